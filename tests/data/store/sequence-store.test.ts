import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { SequenceStore } from '../../../src/data/store/sequence-store.js';
import { sealShard } from '../../../src/data/store/seal-shard.js';
import { ShardWriter, planShards } from '../../../src/data/store/shard-writer.js';
import { type StoreIndex, writeStoreIndex } from '../../../src/data/store/store-index.js';
import { VocabularyWriter } from '../../../src/data/store/vocabulary-writer.js';
import { sha256File } from '../../../src/util/hash.js';
import { writeSafetensors } from '../../../src/util/safetensors.js';

const root = mkdtempSync(join(tmpdir(), 'turbogr-store-'));
afterAll(() => rmSync(root, { recursive: true }));

const LENGTHS = [3, 1, 100, 2, 2, 57, 1];
const EVENTS = LENGTHS.reduce((a, b) => a + b, 0);
/** Above 2^32, so that both halves of an i64 matter, and with low halves that look negative. */
const timeOf = (event: number): number => 1_650_000_000_000 + event * 2_000_000_011;

/** A store of LENGTHS whose items, times and actions tell which event they are; fed in pieces that cut users. */
function makeStore(folder: string, capacity: number): StoreIndex {
  const columns = [
    { name: 'item', dtype: 'I32' },
    { name: 'time', dtype: 'I64' },
    { name: 'action', dtype: 'I32' },
  ] as const;
  const lengths = Int32Array.from(LENGTHS);
  const shards = planShards(lengths, capacity);
  const writer = new ShardWriter({ folder, columns, shards, lengths });
  const users = Int32Array.from(LENGTHS.flatMap((n, u) => Array.from({ length: n }, () => u)));
  const item = Int32Array.from(users, (_, i) => i);
  const time = BigInt64Array.from(Array.from(users, (_, i) => BigInt(timeOf(i))));
  const action = Int32Array.from(users, (_, i) => -1 - i);
  for (let from = 0; from < EVENTS; from += 11) {
    const to = Math.min(EVENTS, from + 11);
    const values = [item.subarray(from, to), time.subarray(from, to), action.subarray(from, to)];
    expect(writer.add(users.subarray(from, to), values)).toBe(true);
  }
  expect(writer.complete).toBe(shards.length);
  const vocabulary = (file: string, size: number) => {
    const values = new VocabularyWriter(folder, {
      file,
      kind: 'integer',
      order: 'ascending value',
      size,
      textBytes: 0,
    });
    values.addIntegers(
      BigInt64Array.from({ length: size }, (_, i) => BigInt(i)),
      new BigInt64Array(size),
    );
    values.addOrder(Int32Array.from({ length: size }, (_, i) => i));
    return values.finish().entry;
  };
  const tensor = { dtype: 'I32', shape: [lengths.length], data: lengths } as const;
  writeSafetensors(join(folder, 'split.safetensors'), { length: tensor, train_end: tensor, validation_end: tensor });
  const index: StoreIndex = {
    format: 'turbogr-store',
    version: 1,
    users: LENGTHS.length,
    items: EVENTS,
    events: EVENTS,
    order: 'user, time, input order',
    time: { kind: 'ms' },
    columns: columns.map(column => ({ ...column, missing: 0 })),
    action: { kind: 'code', labels: [] },
    shards: shards.map(shard => sealShard({ kind: 'seal', folder, shard, dense: undefined })),
    vocabulary: {
      user: vocabulary('users.safetensors', LENGTHS.length),
      item: vocabulary('items.safetensors', EVENTS),
    },
    split: {
      file: 'split.safetensors',
      sha256: sha256File(join(folder, 'split.safetensors')),
      kind: 'none',
      fingerprint: '0'.repeat(64),
      train: EVENTS,
      validation: 0,
      test: 0,
    },
    features: [],
  };
  writeStoreIndex(folder, index);
  return index;
}

function everything(store: SequenceStore) {
  return LENGTHS.map((_, u) => {
    const { items, times, actions } = store.sequence(u);
    return { items: [...items], times: [...(times ?? [])], actions: [...(actions ?? [])] };
  });
}

const expected = LENGTHS.map((n, u) => {
  const first = LENGTHS.slice(0, u).reduce((a, b) => a + b, 0);
  const events = Array.from({ length: n }, (_, i) => first + i);
  return { items: events, times: events.map(timeOf), actions: events.map(event => -1 - event) };
});

describe('sequence store', () => {
  it.each([1, 2, 50, 1000])('gives back every event with shards of %i events', capacity => {
    const folder = mkdtempSync(join(root, 'shards-'));
    const { shards } = makeStore(folder, capacity);
    expect(shards.length).toBe({ 1: 7, 2: 6, 50: 3, 1000: 1 }[capacity]);
    expect(everything(SequenceStore.open(folder))).toEqual(expected);
  });

  it('reads a window into the middle of a batch and touches nothing else', () => {
    const folder = mkdtempSync(join(root, 'window-'));
    makeStore(folder, 50);
    const store = SequenceStore.open(folder);
    const into = { item: new Int32Array(6).fill(-7), time: new BigInt64Array(6).fill(-7n), action: new Int32Array(6) };
    store.read(2, 10, 13, into, 2);
    expect([...into.item]).toEqual([-7, -7, 14, 15, 16, -7]);
    expect([...into.time]).toEqual([-7n, -7n, ...[14, 15, 16].map(e => BigInt(timeOf(e))), -7n]);
    expect(() => store.read(2, 10, 101, into, 0)).toThrow(/user 2 has events 0..100, asked for 10..101/);
    expect(() => store.length(7)).toThrow(/user 7 is outside 0..6/);
    expect(() => store.read(2, 10, 13, into, 4)).toThrow(/has 6 elements, 7 are needed/);
  });

  it('notices a changed byte, a missing index and an index of something else', async () => {
    const folder = mkdtempSync(join(root, 'damage-'));
    const { shards } = makeStore(folder, 50);
    const path = join(folder, shards[1]?.file ?? '');
    const bytes = readFileSync(path);
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
    writeFileSync(path, bytes);
    await expect(SequenceStore.open(folder).verify()).rejects.toThrow(/events-00001.safetensors has checksum/);
    expect(() => SequenceStore.open(root)).toThrow(/has no index.json/);
    writeFileSync(join(folder, 'index.json'), '{"format":"other"}');
    expect(() => SequenceStore.open(folder)).toThrow(/is not a store index/);
  });

  it('refuses events that are out of order, too many or too few', () => {
    const lengths = Int32Array.of(1, 2, 1);
    const add = (...users: number[]): [boolean, number] => {
      const writer = new ShardWriter({
        folder: mkdtempSync(join(root, 'order-')),
        columns: [{ name: 'item', dtype: 'I32' }],
        shards: planShards(lengths, 3),
        lengths,
      });
      return [writer.add(Int32Array.from(users), [new Int32Array(users.length)]), writer.complete];
    };
    expect(add(0, 1, 1, 2)).toEqual([true, 2]);
    expect(add(0, 2)).toEqual([false, 0]);
    expect(add(0, 1, 2)).toEqual([false, 0]);
    expect(add(0, 1, 1, 1)).toEqual([false, 0]);
    expect(add(0, 1, 1)).toEqual([true, 1]);
  });

  it('is laid out as jagged safetensors, byte for byte', () => {
    const folder = mkdtempSync(join(root, 'bytes-'));
    makeStore(folder, 4);
    const bytes = readFileSync(join(folder, 'events-00000.safetensors'));
    const headerBytes = Number(bytes.readBigUInt64LE(0));
    const header: unknown = JSON.parse(bytes.toString('utf8', 8, 8 + headerBytes));
    expect(header).toEqual({
      offsets: { dtype: 'I64', shape: [3], data_offsets: [0, 24] },
      time: { dtype: 'I64', shape: [4], data_offsets: [24, 56] },
      action: { dtype: 'I32', shape: [4], data_offsets: [56, 72] },
      item: { dtype: 'I32', shape: [4], data_offsets: [72, 88] },
    });
    const data = bytes.subarray(8 + headerBytes);
    expect([0, 1, 2].map(i => data.readBigInt64LE(8 * i))).toEqual([0n, 3n, 4n]);
    expect([0, 1, 2, 3].map(i => Number(data.readBigInt64LE(24 + 8 * i)))).toEqual([0, 1, 2, 3].map(timeOf));
    expect([0, 1, 2, 3].map(i => data.readInt32LE(56 + 4 * i))).toEqual([-1, -2, -3, -4]);
    expect([0, 1, 2, 3].map(i => data.readInt32LE(72 + 4 * i))).toEqual([0, 1, 2, 3]);
  });

  const python = spawnSync('python3', ['-c', 'import safetensors.numpy']).status === 0;
  it.skipIf(!python)(
    'is read by the official Python package (skipped where python3 has no safetensors and numpy)',
    () => {
      const folder = mkdtempSync(join(root, 'python-'));
      makeStore(folder, 1000);
      const script =
        'import sys, json; from safetensors.numpy import load_file; print(json.dumps({k: v.tolist() for k, v in load_file(sys.argv[1]).items()}))';
      const file = join(folder, 'events-00000.safetensors');
      const read: unknown = JSON.parse(spawnSync('python3', ['-c', script, file], { encoding: 'utf8' }).stdout);
      expect(read).toEqual({
        offsets: [0, ...LENGTHS.map((_, u) => LENGTHS.slice(0, u + 1).reduce((a, b) => a + b, 0))],
        item: expected.flatMap(user => user.items),
        time: expected.flatMap(user => user.times),
        action: expected.flatMap(user => user.actions),
      });
    },
  );
});
