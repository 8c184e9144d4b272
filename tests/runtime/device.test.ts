// The runtime's promises: data in and out, typed errors at the call or later, failures that stay with their data.
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { Device, type DeviceOptions } from '../../src/native/device.js';
import type { Tensor } from '../../src/tensor/tensor.js';
import { loadProbes } from '../support/probes.js';
import { notFiniteSum } from '../support/exact-sum.js';

const device = Device.open({ threads: 2 });
afterAll(() => device.dispose());

/** The output of an op that fails on its stream: a gradient norm that is not finite. */
function enqueueFailure(): Tensor<'f32'> {
  using squareSum = device.from(notFiniteSum());
  const scale = device.tensor([1, 1]);
  device.call('clip_scale').tensor(squareSum).number(1).tensor(scale).submit();
  return scale;
}

describe('data', () => {
  it('comes back as it went in, for every dtype', async () => {
    expect(await device.read(device.from(Float32Array.of(1.5, -2, 3), [3, 1]))).toEqual(Float32Array.of(1.5, -2, 3));
    expect(await device.read(device.from(Uint16Array.of(0x3c00, 7)))).toEqual(Uint16Array.of(0x3c00, 7));
    expect(await device.read(device.from(Int32Array.of(-1, 2 ** 31 - 1)))).toEqual(Int32Array.of(-1, 2 ** 31 - 1));
    expect(await device.read(device.from(Float64Array.of(2 ** 53, -5)))).toEqual(BigInt64Array.of(2n ** 53n, -5n));
    expect(await device.read(device.from(BigInt64Array.of(-(2n ** 63n))))).toEqual(BigInt64Array.of(-(2n ** 63n)));
  });

  it('of a column range is that of its columns', async () => {
    using whole = device.from(
      Float32Array.from({ length: 12 }, (_, i) => i),
      [3, 4],
    );
    const middle = whole.columns(1, 2);
    expect(await device.read(middle)).toEqual(Float32Array.of(1, 2, 5, 6, 9, 10));
    expect(await device.read(middle.columns(1, 1))).toEqual(Float32Array.of(2, 6, 10));
    device.upload(middle, new Float32Array(6));
    expect(await device.read(whole)).toEqual(Float32Array.of(0, 0, 0, 3, 4, 0, 0, 7, 8, 0, 0, 11));
  });

  it('of a range of elements is that of these elements, across rows', async () => {
    using whole = device.from(Float32Array.of(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11), [3, 4]);
    const part = whole.range(2, 7);
    expect(part.shape).toEqual([1, 7]);
    expect(await device.read(part)).toEqual(Float32Array.of(2, 3, 4, 5, 6, 7, 8));
    device.call('fill_constant').number(-1).tensor(part.range(1, 2)).submit();
    expect(await device.read(whole)).toEqual(Float32Array.of(0, 1, 2, -1, -1, 5, 6, 7, 8, 9, 10, 11));
    expect(() => whole.range(6, 7)).toThrow('a range of a whole tensor in rows, which has 12 elements');
    expect(() => whole.columns(0, 2).range(0, 1)).toThrow('a range of a whole tensor');
    using panels = device.tensor([2, 32], 'f32', 'panels');
    expect(() => panels.range(0, 1)).toThrow('a range of a whole tensor');
    const writes = () => device.call('add').number(1).tensor(whole.range(0, 4)).tensor(whole.range(3, 4)).submit();
    expect(writes).toThrow('alias');
  });

  it('in panels comes back row after row, whole and by columns', async () => {
    const data = Float32Array.from({ length: 3 * 64 }, (_, i) => i);
    using whole = device.tensor([3, 64], 'f32', 'panels');
    device.upload(whole, data);
    expect(await device.read(whole)).toEqual(data);
    const columns = (from: number, to: number) => data.filter((_, i) => i % 64 >= from && i % 64 < to);
    expect(await device.read(whole.columns(16, 32))).toEqual(columns(16, 48));
    expect(await device.read(whole.columns(16, 48).columns(32, 16))).toEqual(columns(48, 64));
    device.upload(whole.columns(32, 32), new Float32Array(3 * 32));
    expect(await device.read(whole)).toEqual(data.map((x, i) => (i % 64 < 32 ? x : 0)));
    device.call('fill_constant').number(7).tensor(whole.columns(0, 48)).submit();
    expect(await device.read(whole)).toEqual(data.map((_, i) => (i % 64 < 48 ? 7 : 0)));
  });

  it('may be empty', async () => {
    expect(await device.read(device.from(new Float32Array(0), [0, 7]))).toHaveLength(0);
    expect(await device.read(device.from(new Float64Array(0)))).toHaveLength(0);
  });

  it('is copied at the upload, not later', async () => {
    const data = Float32Array.of(1, 2);
    const tensor = device.from(data);
    data.fill(9);
    expect(await device.read(tensor)).toEqual(Float32Array.of(1, 2));
  });

  it('with NaN or infinity is refused unless asked for', async () => {
    const bad = new Float32Array(200).fill(1);
    bad[137] = Number.NaN;
    expect(() => device.from(bad)).toThrow(expect.objectContaining({ kind: 'not-finite', got: 'NaN at index 137' }));
    bad[137] = Number.NEGATIVE_INFINITY;
    expect(() => device.from(bad)).toThrow(/-inf at index 137/);
    const kept = await device.read(device.from(bad, [1, 200], { allowNonFinite: true }));
    expect(kept[137]).toBe(Number.NEGATIVE_INFINITY);
  });

  it('of the wrong size, type or range is refused', () => {
    using four = device.tensor([2, 2]);
    using whole = device.tensor([1, 1], 'i64');
    const fails = (work: () => void, fields: object): void => expect(work).toThrow(expect.objectContaining(fields));
    fails(() => device.upload(four, new Float32Array(3)), { kind: 'shape', expected: '4 elements (2 x 2)', got: '3' });
    fails(() => device.upload(four, new Int32Array(4)), { kind: 'dtype', op: 'upload' });
    fails(() => device.upload(whole, Float64Array.of(1.5)), { kind: 'range', got: '1.5 at index 0' });
    fails(() => device.upload(whole, Float64Array.of(2 ** 64)), { kind: 'range' });
    fails(() => device.tensor([-1, 2]), { kind: 'shape', input: 'rows', got: '-1' });
    fails(() => device.tensor([2 ** 30, 2 ** 30]), { kind: 'shape', op: 'alloc' });
    fails(() => four.columns(1, 2), { kind: 'shape', op: 'view', got: '2 from 1' });
    fails(() => device.tensor([2, 40], 'f32', 'panels'), { kind: 'shape', op: 'alloc', got: '40 columns of f32' });
    fails(() => device.tensor([2, 48], 'i32', 'panels'), { kind: 'shape', input: 'panels', got: '48 columns of i32' });
    using panels = device.tensor([2, 64], 'f32', 'panels');
    fails(() => panels.columns(8, 32), { kind: 'shape', expected: 'whole panels of 16', got: '32 from 8' });
    fails(() => panels.columns(16, 8), { kind: 'shape', expected: 'whole panels of 16', got: '8 from 16' });
  });
});

describe('a handle', () => {
  it('that was disposed is refused, also when its slot has a new owner', () => {
    const old = device.tensor([2, 2]);
    const view = old.columns(0, 1);
    old.dispose();
    old.dispose();
    for (let i = 0; i < 100; i++) device.tensor([2, 2]).dispose();
    const refused = { kind: 'handle', expected: 'a live tensor of this device', got: 'one that was disposed' };
    expect(() => device.upload(old, new Float32Array(4))).toThrow(expect.objectContaining(refused));
    expect(() => device.upload(view, new Float32Array(2))).toThrow(expect.objectContaining(refused));
    expect(() => device.call('clock').number(0).tensor(old).submit()).toThrow(
      expect.objectContaining({ ...refused, op: 'clock', input: 'out' }),
    );
  });

  it('of another device is refused', async () => {
    using other = Device.open({ threads: 1 });
    const foreign = other.from(Float32Array.of(1));
    await expect(device.read(foreign)).rejects.toMatchObject({ kind: 'handle', got: 'one of another device' });
  });

  it('of a closed device is refused, and disposing it is no error', async () => {
    const other = Device.open({ threads: 1 });
    const tensor = other.from(Float32Array.of(1));
    other.dispose();
    await expect(other.read(tensor)).rejects.toMatchObject({ kind: 'closed', op: 'read' });
    await expect(other.sync()).rejects.toMatchObject({ kind: 'closed' });
    expect(() => other.tensor([1, 1])).toThrow(expect.objectContaining({ kind: 'closed' }));
    tensor.dispose();
  });
});

describe('a closed device', () => {
  it('drops what was not begun and refuses the promises that were open', async () => {
    const other = Device.open({ threads: 1 });
    const out = other.tensor([1, 2], 'i64');
    for (let i = 0; i < 500; i++) other.call('fma_peak').number(50_000_000).tensor(out).submit();
    const [read, synced] = [other.read(out), other.sync()];
    other.dispose();
    await expect(read).rejects.toMatchObject({ kind: 'closed' });
    await expect(synced).rejects.toMatchObject({ kind: 'closed' });
  });
});

describe('a call', () => {
  it('with a missing, surplus or mistyped argument is refused when it is enqueued', () => {
    using floats = device.tensor([1, 4]);
    const fails = (work: () => void, fields: object): void => expect(work).toThrow(expect.objectContaining(fields));
    fails(() => device.call('clock').submit(), { kind: 'op', op: 'clock', got: 'the end of the arguments' });
    fails(() => device.call('fill_constant').number(1).tensor(floats).number(1).submit(), { got: '1 too many' });
    fails(() => device.call('panic').submit(), { kind: 'op', op: 'panic', got: 'an unknown name' });
    fails(() => device.call('clock').number(0).tensor(floats).submit(), { kind: 'dtype', expected: 'i64', got: 'f32' });
  });
});

describe('a failure', () => {
  it('reaches what is computed from it, on any stream, and nothing else', async () => {
    using safe = device.from(Float32Array.of(1, 2, 3));
    using spoiled = enqueueFailure();
    using copy = device.from(new Float32Array(1), [1, 1]);
    device.call('add').number(1).tensor(spoiled).tensor(copy).submit('sparse');
    device.upload(safe, Float32Array.of(3, 4, 5));
    expect(await device.read(safe)).toEqual(Float32Array.of(3, 4, 5));
    const reported = { name: 'TurboError', kind: 'not-finite', op: 'clip_scale', input: 'square_sum', got: 'inf' };
    await expect(device.read(copy, 'sparse')).rejects.toMatchObject(reported);
    await expect(device.read(spoiled, 'comm')).rejects.toMatchObject(reported);
    await device.sync(); // told already
    expect(await device.read(copy)).toEqual(new Float32Array(1));
  });

  it('that nobody reads is reported by the sync, once', async () => {
    enqueueFailure().dispose();
    await expect(device.sync()).rejects.toMatchObject({ kind: 'not-finite' });
    await device.sync();
  });

  it('ends with the memory it spoiled: a caller who never syncs can go on', async () => {
    for (let round = 0; round < 200; round++) {
      const spoiled = enqueueFailure();
      const read = device.read(spoiled);
      spoiled.dispose();
      using next = device.from(Float32Array.of(round), [1, 1], { stream: round % 2 ? 'sparse' : 'compute' });
      await expect(read).rejects.toMatchObject({ kind: 'not-finite' });
      expect(await device.read(next)).toEqual(Float32Array.of(round));
    }
    await device.sync();
  });

  it('by panic is ours, and the process lives on', async () => {
    using other = Device.open({ threads: 1 }, loadProbes());
    other.call('panic').submit();
    await expect(other.sync()).rejects.toMatchObject({ kind: 'panic', op: 'panic', got: 'asked for' });
    expect(await other.read(other.from(Float32Array.of(1)))).toEqual(Float32Array.of(1));
  });
});

describe('operands', () => {
  const x = device.from(new Float32Array(64).fill(1), [4, 16]);

  it('of which one is written must not overlap', () => {
    const refused = (work: () => void, fields: object): void =>
      expect(work).toThrow(expect.objectContaining({ kind: 'alias', ...fields }));
    refused(() => device.call('lerp').number(0.5).tensor(x).tensor(x).submit(), {
      op: 'lerp',
      input: 'y',
      got: 'memory that x uses too',
    });
    const add = (a: Tensor, b: Tensor) => device.call('add').number(1).tensor(a).tensor(b).submit();
    refused(() => add(x.columns(0, 8), x.columns(7, 8)), { op: 'add', input: 'y' });
    refused(() => add(x.columns(4, 8), x.columns(0, 8)), { op: 'add' });
    using panels = device.tensor([4, 64], 'f32', 'panels');
    refused(() => project(panels.columns(0, 32), panels.columns(16, 32)), { op: 'norm_linear_forward', input: 'z' });
  });

  it('may be column ranges side by side, or be read twice', async () => {
    const add = (a: Tensor, b: Tensor) => device.call('add').number(1).tensor(a).tensor(b).submit();
    add(x.columns(0, 8), x.columns(8, 8));
    add(x.columns(15, 1), x.columns(14, 1));
    expect((await device.read(x)).slice(0, 16)).toEqual(
      Float32Array.of(...Array(8).fill(1), ...Array(6).fill(2), 4, 2),
    );
    using panels = device.tensor([4, 64], 'f32', 'panels');
    project(panels.columns(0, 32), panels.columns(32, 32));
    await device.sync();
  });

  /** Writes a projection before and after its activation. */
  function project(y: Tensor, z: Tensor): void {
    using w = device.from(new Float32Array(16 * 32), [16, 32]);
    using stats = device.tensor([4, 2]);
    const call = device.call('norm_linear_forward').tensor(x).number(1).number(1e-5).dropout(undefined).tensor(w);
    call.tensor(undefined).number(1).tensor(y).tensor(z).tensor(stats).submit();
  }
});

describe('streams', () => {
  it('never let another one change what a running op has checked', async () => {
    const [rows, tokens] = [100, 4096];
    using table = device.from(new Float32Array(rows * 16).fill(1), [rows, 16]);
    using ids = device.tensor([1, tokens], 'i32');
    using out = device.tensor([tokens, 16]);
    const [good, bad] = [new Int32Array(tokens).fill(rows - 1), new Int32Array(tokens).fill(2 ** 30)];
    for (let round = 0; round < 200; round++) {
      device.upload(ids, good, { stream: 'sparse' });
      const gather = device.call('embedding_gather_forward').tensor(table).tensor(ids).number(1);
      gather.tensor(undefined).tensor(undefined).dropout(undefined).flag(false).tensor(out).submit();
      device.upload(ids, bad, { stream: 'comm' });
    }
    expect((await device.read(out)).every(x => x === 1)).toBe(true);
  });

  it('take more commands than the ring holds', async () => {
    using tensor = device.tensor([1, 1]);
    for (let i = 0; i < 5000; i++) device.upload(tensor, Float32Array.of(i));
    expect(await device.read(tensor)).toEqual(Float32Array.of(4999));
  });

  it('never see memory that another stream still works on', async () => {
    for (let round = 0; round < 50; round++) {
      const busy = device.tensor([1, 2], 'i64');
      const slow = device.from(new Float32Array(1000).fill(round));
      device.call('fma_peak').number(20_000).tensor(busy).submit();
      const read = device.read(slow);
      slow.dispose();
      busy.dispose();
      // Most likely the block of `slow`, while the compute stream has yet to read it.
      const next = device.from(new Float32Array(1000).fill(-1), [1, 1000], { stream: 'sparse' });
      expect((await read).every(x => x === round)).toBe(true);
      expect((await device.read(next, 'sparse'))[0]).toBe(-1);
      next.dispose();
    }
  });
});

describe('memory that the system refuses', () => {
  it('is a typed error, of a tensor and of scratch, and no abort', async () => {
    using other = Device.open({ threads: 1 });
    const refused = { kind: 'memory', op: 'alloc', got: 'no more from the system' };
    expect(() => other.tensor([2 ** 22, 2 ** 21])).toThrow(expect.objectContaining(refused));
    expect(await other.read(other.from(Float32Array.of(1)))).toEqual(Float32Array.of(1));
  });
});

describe('kernels', () => {
  afterEach(() => vi.unstubAllEnvs());

  it('are those of the options, then of TURBOGR_KERNELS, then the best', () => {
    const isaOf = (options: DeviceOptions) => {
      using opened = Device.open({ threads: 1, ...options });
      return opened.stats().isa;
    };
    vi.stubEnv('TURBOGR_KERNELS', undefined);
    const best = isaOf({});
    expect(isaOf({ kernels: 'best' })).toBe(best);
    expect(isaOf({ kernels: 'portable' })).toBe('portable');
    vi.stubEnv('TURBOGR_KERNELS', 'portable');
    expect(isaOf({})).toBe('portable');
    expect(isaOf({ kernels: 'best' })).toBe(best);
  });

  it('that this CPU does not have are refused', () => {
    vi.stubEnv('TURBOGR_KERNELS', 'sse');
    expect(() => Device.open()).toThrow(expect.objectContaining({ code: 'bad-kernels' }));
  });
});
