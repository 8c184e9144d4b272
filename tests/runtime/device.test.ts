// The runtime's promises: data in and out, typed errors at the call or at the sync, streams that recover, events.
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { loadAddon } from '../../src/native/addon.js';
import { Device, mapFile } from '../../src/native/device.js';

const device = Device.open({ threads: 2 });
afterAll(() => device.dispose());

/** An op that fails on its stream: offsets that do not end at the number of tokens. */
function enqueueFailure(): void {
  const x = device.from(Float32Array.of(1, 2, 3), [3, 1]);
  const offsets = device.from(Int32Array.of(0, 2));
  const o = device.tensor([3, 1]);
  device
    .call('hstu_attention_forward')
    .tensor(x)
    .tensor(x)
    .tensor(x)
    .number(1)
    .tensor(offsets)
    .number(8)
    .tensor(undefined)
    .tensor(undefined)
    .tensor(undefined)
    .tensor(undefined)
    .tensor(o)
    .submit();
  for (const tensor of [x, offsets, o]) tensor.dispose();
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
    fails(() => device.upload(whole, Float64Array.of(2 ** 60)), { kind: 'range' });
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
    const [read, synced] = [other.read(out), other.sync('compute')];
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
    fails(() => device.call('panic').number(1).submit(), { kind: 'op', op: 'panic', got: '1 too many' });
    fails(() => device.call('clock').number(0).tensor(floats).submit(), { kind: 'dtype', expected: 'i64', got: 'f32' });
  });
});

describe('a failure', () => {
  it('sticks to its stream until a sync has reported it; other tensors live on', async () => {
    using safe = device.from(Float32Array.of(1, 2));
    enqueueFailure();
    device.upload(safe, Float32Array.of(3, 4));
    await expect(device.read(safe)).rejects.toMatchObject({ kind: 'offsets', op: 'hstu_attention' });
    await expect(device.sync('compute')).rejects.toMatchObject({
      name: 'TurboError',
      kind: 'offsets',
      op: 'hstu_attention',
      input: 'offsets',
      expected: 'a last offset of 3 (the tokens of the batch)',
      got: '2',
    });
    await device.sync();
    expect(await device.read(safe)).toEqual(Float32Array.of(1, 2));
  });

  it('does not reach a stream that has nothing to do with it', async () => {
    enqueueFailure();
    using tensor = device.from(Float32Array.of(5), [1, 1], { stream: 'sparse' });
    expect(await device.read(tensor, 'sparse')).toEqual(Float32Array.of(5));
    await expect(device.sync()).rejects.toMatchObject({ kind: 'offsets' });
  });

  it('reaches a stream that waits for the failed one', async () => {
    enqueueFailure();
    device.wait('sparse', device.record('compute'));
    await expect(device.sync('sparse')).rejects.toMatchObject({ kind: 'offsets' });
    await expect(device.sync('compute')).rejects.toMatchObject({ kind: 'offsets' });
    await device.sync();
  });

  it('by panic is ours, and the process lives on', async () => {
    device.call('panic').submit();
    await expect(device.sync()).rejects.toMatchObject({ kind: 'panic', op: 'panic', got: 'asked for' });
    expect(await device.read(device.from(Float32Array.of(1)))).toEqual(Float32Array.of(1));
  });
});

describe('streams', () => {
  it('keep their order, and events order them among each other', async () => {
    using clocks = device.tensor([1, 3], 'i64');
    const busy = device.tensor([1, 2], 'i64');
    device.upload(clocks, BigInt64Array.of(0n, 0n, 0n));
    device.wait('sparse', device.record('compute'));
    device.call('fma_peak').number(2_000_000).tensor(busy).submit();
    device.call('clock').number(0).tensor(clocks).submit();
    device.wait('sparse', device.record('compute'));
    device.call('clock').number(1).tensor(clocks).submit('sparse');
    device.wait('compute', device.record('sparse'));
    device.call('clock').number(2).tensor(clocks).submit();
    const [first, second, third] = await device.read(clocks);
    expect(first! > 0n && first! <= second! && second! <= third!).toBe(true);
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

describe('files', () => {
  it('are mapped, and writes stay private', () => {
    const path = join(tmpdir(), `turbogr-map-${process.pid}`);
    writeFileSync(path, 'jagged');
    const bytes = new Uint8Array(mapFile(path));
    expect(Buffer.from(bytes).toString()).toBe('jagged');
    bytes[0] = 66;
    expect(Buffer.from(mapFile(path)).toString()).toBe('jagged');
    writeFileSync(path, '');
    expect(mapFile(path).byteLength).toBe(0);
    expect(() => mapFile(`${path}-absent`)).toThrow(expect.objectContaining({ kind: 'file', op: 'map_file' }));
  });
});

describe('the loader', () => {
  it('names path, platform, cause and remedy', () => {
    const absent = join(tmpdir(), 'no-such-addon.node');
    expect(() => loadAddon(absent)).toThrow(
      expect.objectContaining({ code: 'native-missing', remedy: expect.stringContaining('npm run build:native') }),
    );
    const broken = join(tmpdir(), `turbogr-broken-${process.pid}.node`);
    writeFileSync(broken, 'not a library');
    expect(() => loadAddon(broken)).toThrow(
      expect.objectContaining({
        code: 'native-broken',
        message: expect.stringMatching(new RegExp(`${broken} on ${process.platform}-${process.arch}.*Cause: .+`, 's')),
      }),
    );
  });
});
