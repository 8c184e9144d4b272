// The unfused attention that `turbogr bench paper` compares with the fused kernel computes the same result.

import { expect, it } from 'vitest';
import { UnfusedAttention } from '../../src/bench/paper/unfused-attention.js';
import { Device } from '../../src/native/device.js';
import { hstuAttention } from '../../src/ops/hstu-attention.js';
import { Parameter } from '../../src/ops/parameter.js';
import { Tape } from '../../src/ops/tape.js';
import { Random } from '../../src/util/random.js';

it('unfused attention gives the outputs and gradients of the fused kernel', async () => {
  using device = Device.open({ threads: 1 });
  const [n, width, constant] = [37, 16, 40];
  const random = new Random(1, 'unfused');
  const draw = (size: number) => Float32Array.from({ length: size }, () => random.normal());
  const [q, k, v, dO, pos] = [
    draw(n * width),
    draw(n * width),
    draw(n * width),
    draw(n * width),
    draw(2 * constant - 1),
  ];
  const tensors = { q: device.from(q, [n, width]), k: device.from(k, [n, width]), v: device.from(v, [n, width]) };

  const tape = new Tape(device, { training: true });
  for (const input of Object.values(tensors)) tape.watch(input);
  const posW = new Parameter(device, 'pos_w', device.from(pos, [1, pos.length]));
  const o = hstuAttention(
    tape,
    tensors,
    { offsets: device.from(Int32Array.of(0, n)) },
    { heads: 1, n: constant, posW },
  );
  const expected = await device.read(o);
  tape.seedGrad(o, device.from(dO, [n, width]));
  tape.backward();
  const [dq, dk, dv] = await Promise.all([tensors.q, tensors.k, tensors.v].map(x => device.read(tape.inputGrad(x)!)));

  const columns = (rows: Float32Array) => rows.map((_, at) => rows[(at % n) * width + Math.floor(at / n)]!);
  const bias = Float32Array.from({ length: n * n }, (_, at) => pos[(at % n) - Math.floor(at / n) + constant - 1]!);
  const inputs = { ...tensors, keys: device.from(columns(k), [width, n]), bias: device.from(bias, [n, n]) };
  const out = device.tensor([n, width]);
  const to = { q: device.tensor([n, width]), keys: device.tensor([width, n]), v: device.tensor([n, width]) };
  using unfused = new UnfusedAttention(device, { n, width, constant });
  unfused.forward(inputs, out);
  const got = await device.read(out);
  unfused.backward(inputs, device.from(dO, [n, width]), to);

  const far = (a: Float32Array, b: Float32Array) => Math.max(...a.map((x, i) => Math.abs(x - b[i]!)));
  expect(far(got, expected)).toBeLessThan(1e-5);
  expect(far(await device.read(to.q), dq!)).toBeLessThan(1e-5);
  expect(far(await device.read(to.keys), columns(dk!))).toBeLessThan(1e-5);
  expect(far(await device.read(to.v), dv!)).toBeLessThan(1e-5);
  expect(Math.max(...expected.map(Math.abs))).toBeGreaterThan(0.1);
});
