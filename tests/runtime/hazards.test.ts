// Streams wait for each other automatically. Each program below needs exactly the waits that it makes: skipping any one of them
// changes its result. Random programs give the same bits on three streams as on one.
import * as fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { STREAMS, type StreamName } from '../../src/native/call.js';
import { Device } from '../../src/native/device.js';
import type { Tensor } from '../../src/tensor/tensor.js';
import { loadProbes } from '../support/probes.js';

const probes = loadProbes();
const device = Device.open({ threads: 2 }, probes);
afterAll(() => device.dispose());

const fill = (x: Tensor, value: number, stream: StreamName): void =>
  device.call('fill_constant').number(value).tensor(x).submit(stream);
const add = (x: Tensor, y: Tensor, stream: StreamName): void =>
  device.call('add').number(1).tensor(x).tensor(y).submit(stream);
const delay = (stream: StreamName, milliseconds = 25): void => device.call('delay').number(milliseconds).submit(stream);
const floats = (value: number): Tensor<'f32'> => device.from(new Float32Array(1000).fill(value));

/** Each: what must come out, and the program. Tensors are settled before it starts; the waits are those of its own commands. */
const PROGRAMS: Record<string, [expected: number, run: (x: Tensor<'f32'>, y: Tensor<'f32'>) => Promise<Float32Array>]> =
  {
    'read after write': [
      3,
      (x, y) => {
        delay('compute');
        fill(x, 3, 'compute');
        add(x, y, 'sparse');
        return device.read(y, 'sparse');
      },
    ],
    'write after read': [
      1,
      (x, y) => {
        delay('compute');
        add(x, y, 'compute');
        fill(x, 9, 'sparse');
        return device.read(y);
      },
    ],
    'write after write': [
      2,
      x => {
        delay('compute');
        fill(x, 1, 'compute');
        fill(x, 2, 'sparse');
        delay('sparse', 50);
        return device.read(x, 'sparse');
      },
    ],
    'a chain over three streams': [
      5,
      (x, y) => {
        delay('compute');
        fill(x, 5, 'compute');
        add(x, y, 'sparse');
        return device.read(y, 'comm');
      },
    ],
    'an upload after a read': [
      1,
      (x, y) => {
        delay('comm');
        add(x, y, 'comm');
        device.upload(x, new Float32Array(1000).fill(9), { stream: 'sparse' });
        return device.read(y, 'comm');
      },
    ],
    'a read after an upload': [
      4,
      x => {
        delay('sparse');
        device.upload(x, new Float32Array(1000).fill(4), { stream: 'sparse' });
        return device.read(x, 'comm');
      },
    ],
    'freed memory in its next use': [
      1,
      x => {
        delay('compute');
        const copied = device.read(x);
        x.dispose();
        const next = device.tensor(x.shape);
        fill(next, 9, 'sparse');
        next.dispose();
        return copied;
      },
    ],
  };

describe('each automatic wait', () => {
  it.each(Object.entries(PROGRAMS))('counts: %s', async (_, [expected, program]) => {
    const run = async (without?: number): Promise<{ value: number; waits: number }> => {
      using x = floats(1);
      using y = floats(0);
      await device.sync();
      probes.leaveOutWait(without);
      const read = program(x, y);
      const waits = probes.leaveOutWait();
      const [value] = await read;
      await device.sync();
      return { value: value!, waits };
    };
    const { value, waits } = await run();
    expect(value).toBe(expected);
    expect(waits).toBeGreaterThan(0);
    for (let i = 0; i < waits; i++) expect(await run(i), `without wait ${i}`).not.toMatchObject({ value: expected });
  });

  it('is made between streams only', async () => {
    using x = floats(1);
    using y = floats(1);
    await device.sync();
    probes.leaveOutWait();
    for (let i = 0; i < 100; i++) add(x, y, 'sparse');
    await device.read(y, 'sparse');
    expect(probes.leaveOutWait()).toBe(0);
  });
});

const COUNT = 5;
const SIZE = 257;
const operand = fc.nat(COUNT - 1);
const two = fc.uniqueArray(operand, { minLength: 2, maxLength: 2 });
const command = fc.oneof(
  fc.record({ kind: fc.constant('add' as const), two }),
  fc.record({ kind: fc.constant('lerp' as const), two }),
  fc.record({ kind: fc.constant('half' as const), two }),
  fc.record({ kind: fc.constant('columns' as const), x: operand }),
  fc.record({ kind: fc.constant('upload' as const), x: operand, value: fc.nat(9) }),
  fc.record({ kind: fc.constant('fill' as const), x: operand, value: fc.nat(9) }),
  fc.record({ kind: fc.constant('renew' as const), x: operand, value: fc.nat(9) }),
  fc.record({ kind: fc.constant('read' as const), x: operand }),
  fc.record({ kind: fc.constant('delay' as const) }),
);
const programs = fc.array(fc.tuple(fc.nat(2), command), { minLength: 10, maxLength: 60 });
type Program = typeof programs extends fc.Arbitrary<infer P> ? P : never;

async function runProgram(program: Program, streams: readonly StreamName[]): Promise<Buffer> {
  const shape = [1, SIZE] as const;
  const tensors = Array.from({ length: COUNT }, (_, i) => device.from(new Float32Array(SIZE).fill(i + 1), shape));
  const reads: Promise<Float32Array>[] = [];
  for (const [place, step] of program) {
    const stream = streams[place % streams.length]!;
    const [x, y] = 'two' in step ? step.two.map(i => tensors[i]!) : ['x' in step ? tensors[step.x]! : tensors[0]!];
    if (step.kind === 'add') add(x!, y!, stream);
    if (step.kind === 'lerp') device.call('lerp').number(0.25).tensor(x).tensor(y).submit(stream);
    if (step.kind === 'columns') add(x!.columns(0, 100), x!.columns(100, 100), stream);
    if (step.kind === 'upload') device.upload(x!, new Float32Array(SIZE).fill(step.value), { stream });
    if (step.kind === 'fill') fill(x!, step.value, stream);
    if (step.kind === 'read') reads.push(device.read(x!, stream));
    if (step.kind === 'delay') delay(stream, 1);
    if (step.kind === 'half') {
      using half = device.tensor(shape, 'f16');
      device.call('cast_to_f16').tensor(x).tensor(half).submit(stream);
      device
        .call('cast_to_f32')
        .tensor(half)
        .tensor(y)
        .submit(streams[(place + 1) % streams.length]);
    }
    if (step.kind === 'renew') {
      x!.dispose();
      tensors[step.x] = device.tensor(shape);
      fill(tensors[step.x]!, step.value, stream);
    }
  }
  for (const tensor of tensors) reads.push(device.read(tensor));
  const parts = (await Promise.all(reads)).map(part => Buffer.from(part.buffer));
  for (const tensor of tensors) tensor.dispose();
  return Buffer.concat(parts);
}

describe('random programs', () => {
  it('give the same bits on three streams as on one', async () => {
    const property = fc.asyncProperty(programs, async program => {
      const one = await runProgram(program, ['compute']);
      const three = await runProgram(program, STREAMS);
      expect(three.equals(one)).toBe(true);
    });
    await fc.assert(property, { seed: 7, numRuns: 150 });
    await device.sync();
  });

  it('free and reuse memory across streams without touching what is still in use', async () => {
    const property = fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(2), fc.nat(2), fc.nat(3), fc.nat(3)), { minLength: 20 }),
      async steps => {
        const reads: [number, Promise<Float32Array>][] = [];
        steps.forEach(([writer, reader, size, home], i) => {
          device.home(STREAMS[home]);
          using tensor = device.tensor([1, 300 + 100 * size]);
          if (i % 7 === 0) delay(STREAMS[writer]!, 1);
          fill(tensor, i, STREAMS[writer]!);
          reads.push([i, device.read(tensor, STREAMS[reader])]);
        });
        device.home();
        for (const [i, read] of reads) expect((await read).every(x => x === i)).toBe(true);
      },
    );
    await fc.assert(property, { seed: 11, numRuns: 50 });
    await device.sync();
  });
});

describe('memory of a tensor', () => {
  /** Which finishes first: a stream's slow work on a disposed tensor, or another stream's work on the next one. */
  async function first(): Promise<string> {
    using other = floats(0);
    const used = device.tensor([7, 1000]);
    delay('sparse', 200);
    const slow = device.read(other, 'sparse').then(() => 'slow'); // before the tensor is used: whoever waits for that comes later
    fill(used, 1, 'sparse');
    used.dispose();
    using next = device.tensor([7, 1000]);
    fill(next, 2, 'compute');
    const done = await Promise.race([slow, device.read(next).then(() => 'next')]);
    await device.sync();
    return done;
  }

  it('ties the streams that use it one after the other, unless it is said which stream it is for', async () => {
    expect(await first()).toBe('slow');
    device.home('compute');
    expect(await first()).toBe('next');
    device.home();
  });
});
