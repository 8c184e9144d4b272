// Fused attention against a composition of separate ops that stores n x n matrices: time and memory of one sequence.
//
// n tokens, h heads, a = v width of a head.

import { Device } from '../../native/device.js';
import { fillConstant, fillNormal } from '../../ops/fill.js';
import { hstuAttention } from '../../ops/hstu-attention.js';
import { Parameter } from '../../ops/parameter.js';
import { Tape } from '../../ops/tape.js';
import type { Tensor } from '../../tensor/tensor.js';
import { formatCount } from '../../util/terminal.js';
import { median } from '../measuring.js';
import type { PaperRow, Section, SectionOptions } from './row.js';
import { RandomHead, UnfusedAttention } from './unfused-attention.js';

const [N, HEADS, WIDTH] = [8192, 8, 128];

export const attention: Section = {
  id: 'attention',
  title: 'Fused jagged attention',
  about:
    'HSTU attention of one sequence of 8,192 tokens, 8 heads of 128, with position bias, forward and backward. The unfused form is composed of our own ops, head by head, each a pass over an n x n matrix in memory; a framework that keeps all heads for backward needs eight times its memory. The paper measures FuXi-long at 8k.',
  parts: [{ id: 'time and memory at 8k', measure }],
};

async function measure({ quick, threads }: SectionOptions): Promise<PaperRow[]> {
  const rounds = quick ? 1 : 5;
  const how = { ...(threads !== undefined && { threads }) };
  const [fused, fusedBytes] = await onDevice(how, device => fusedMillis(device, rounds));
  const [unfused, unfusedBytes] = await onDevice(how, device => unfusedMillis(device, rounds));
  const megabytes = (bytes: number): string => `${formatCount(bytes / 2 ** 20)} MB`;
  return [
    {
      name: 'time at 8k: unfused -> fused',
      paper: '961.21 -> 431.13 ms (2.23x)',
      ours: `${formatCount(unfused)} -> ${formatCount(fused)} ms (${(unfused / fused).toFixed(2)}x)`,
      figures: { unfused_ms: unfused, fused_ms: fused, tokens: N },
    },
    {
      name: 'memory at 8k: unfused -> fused',
      paper: '47.77 -> 14.31 GB',
      ours: `${megabytes(unfusedBytes)} (one head at a time) -> ${megabytes(fusedBytes)} (all heads)`,
      figures: { unfused_bytes: unfusedBytes, fused_bytes: fusedBytes },
    },
  ];
}

/** Result of `work`, and the memory that a separate device reserved for it. */
async function onDevice(
  how: { threads?: number },
  work: (device: Device) => Promise<number>,
): Promise<[millis: number, bytes: number]> {
  using device = Device.open(how);
  const before = device.stats().reservedBytes;
  const millis = await work(device);
  return [millis, device.stats().reservedBytes - before];
}

async function unfusedMillis(device: Device, rounds: number): Promise<number> {
  using head = new RandomHead(device, N, WIDTH);
  using composed = new UnfusedAttention(device, { n: N, width: WIDTH, constant: N });
  return await timed(device, rounds, () => {
    for (let h = 0; h < HEADS; h++) {
      composed.forward(head.inputs, head.out);
      composed.backward(head.inputs, head.out, head.gradients);
    }
  });
}

async function fusedMillis(device: Device, rounds: number): Promise<number> {
  const random = (rows: number, cols: number, std: number): Tensor<'f32'> => {
    const tensor = device.tensor([rows, cols]);
    fillNormal(device, tensor, { seed: 1, step: 0, purpose: rows + cols }, { std });
    return tensor;
  };
  const [q, k, v] = [random(N, HEADS * WIDTH, 0.1), random(N, HEADS * WIDTH, 0.1), random(N, HEADS * WIDTH, 1)];
  const posW = new Parameter(device, 'pos_w', random(1, 2 * N - 1, 0.1));
  using offsets = device.from(Int32Array.of(0, N));
  return await timed(device, rounds, () => {
    using tape = new Tape(device, { training: true });
    for (const input of [q, k, v]) tape.watch(input);
    const o = hstuAttention(tape, { q, k, v }, { offsets }, { heads: HEADS, n: N, posW });
    const grad = device.tensor(o.shape);
    fillConstant(device, grad, 1e-3);
    tape.seedGrad(o, grad);
    tape.backward();
  });
}

/** Median milliseconds of a few rounds, after one warm-up round. */
export async function timed(device: Device, rounds: number, work: () => void): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round <= rounds; round++) {
    await device.sync();
    const start = performance.now();
    work();
    await device.sync();
    if (round > 0) times.push(performance.now() - start);
  }
  return median(times);
}
