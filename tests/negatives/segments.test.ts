// Losses with negatives fetched segment by segment: f32 gives the bits of reading the table, FP16 is close, and only two buffers are
// allocated.
import { describe, expect, test } from 'vitest';
import { Device } from '../../src/native/device.js';
import { NegativeSegments } from '../../src/negatives/negative-segments.js';
import { SegmentBuffers } from '../../src/negatives/segment-buffers.js';
import { drawNegatives, drawPool } from '../../src/ops/draw-negatives.js';
import { copyRows } from '../../src/ops/copy-rows.js';
import type { Segment } from '../../src/ops/fetch-negatives.js';
import { fillNormal } from '../../src/ops/fill.js';
import { pooledLoss } from '../../src/ops/pooled-loss.js';
import type { RowDtype } from '../../src/ops/row-source.js';
import { sampledSoftmax } from '../../src/ops/sampled-softmax.js';
import { shareNegatives } from '../../src/ops/share-negatives.js';
import { sharedLoss } from '../../src/ops/shared-loss.js';
import { Table } from '../../src/ops/table.js';
import { Tape } from '../../src/ops/tape.js';

// A table that no loss copies as a whole.
const [TOKENS, WIDTH, ITEMS, DRAWS] = [50, 24, 90_000, 12];
const KEY = { seed: 3, step: 1, purpose: 0 };

type Kind = 'tokens' | 'groups' | 'pool';
interface Way {
  dtype: RowDtype;
  size: number;
}

/** Loss, gradient of the states, and the table's as ids and rows. */
async function solve(kind: Kind, way?: Way): Promise<[Float32Array, Float32Array, Int32Array, Float32Array]> {
  using device = Device.open({ threads: 2 });
  using table = new Table(device, 'items', device.tensor([ITEMS, WIDTH]));
  // Rows of very different sizes: all of them small for FP16.
  fillNormal(device, table.value, { ...KEY, purpose: 1 }, { std: 1e-5 });
  using u = device.tensor([TOKENS, WIDTH]);
  fillNormal(device, u, { ...KEY, purpose: 2 }, { std: 1 });
  const positives = device.from(Int32Array.from({ length: TOKENS }, (_, t) => (t % 7 === 3 ? -1 : t * 97)));
  const negatives = device.tensor(kind === 'pool' ? [1, 40] : [TOKENS, DRAWS], 'i32');
  const sampler = { kind: 'uniform', count: ITEMS } as const;
  if (kind === 'pool') drawPool(device, negatives, KEY, sampler);
  else drawNegatives(device, negatives, KEY, sampler);
  const shared = kind === 'groups' && shareNegatives(device, KEY, { positives, drawn: negatives, factor: 3 });
  const drawn = shared ? shared.negatives : negatives;
  const source = { device, from: table.value, ids: drawn, normalizedEps: 1e-9, stream: 'sparse' } as const;
  const segments =
    way && new NegativeSegments({ ...source, buffers: new SegmentBuffers(device, way.dtype), size: way.size });
  using tape = new Tape(device, { training: true });
  tape.watch(u);
  const options = { positives, segments, temperature: 0.05, normalizeUser: true, normalizeItem: true, eps: 1e-9 };
  const objective = { kind: 'sampled-softmax' } as const;
  const loss = {
    tokens: () => sampledSoftmax(tape, u, table, { ...options, negatives }),
    groups: () => sharedLoss(tape, u, table, { ...options, draws: shared || never(), objective, share: 'outputs' }),
    pool: () => pooledLoss(tape, u, table, { ...options, pool: negatives, objective }),
  }[kind]();
  const du = tape.grad(u);
  const list = table.rowGradient.takeList();
  const [value, gradient, ids, rows] = await Promise.all([
    device.read(loss),
    device.read(du),
    device.read(list.ids),
    device.read(list.rows),
  ]);
  return [value, gradient, ids, rows.subarray(0, WIDTH * ids.filter(id => id >= 0).length)];
}

function never(): never {
  throw new Error('there are no groups');
}

describe.each<Kind>(['tokens', 'groups', 'pool'])('draws by %s', kind => {
  test('f32 rows give the bits of the table, in one segment and in many', async () => {
    const plain = await solve(kind);
    for (const size of [0, 1, 7, 64]) expect(await solve(kind, { dtype: 'f32', size })).toEqual(plain);
  });

  test('FP16 rows are near, however small they are, and segments change nothing', async () => {
    const [loss, du, ids, rows] = await solve(kind);
    const whole = await solve(kind, { dtype: 'f16', size: 0 });
    expect(await solve(kind, { dtype: 'f16', size: 5 })).toEqual(whole);
    expect(whole[2]).toEqual(ids);
    // Eleven bits of each number: cosines are off by 2^-11 at most, logits by 20 times that.
    expect(Math.abs(whole[0][0]! - loss[0]!)).toBeLessThan(0.01 * loss[0]!);
    expect(distance(whole[1], du)).toBeLessThan(0.01);
    expect(distance(whole[3], rows)).toBeLessThan(0.01);
    expect(whole[0]).not.toEqual(loss);
  });
});

test('no more than two segments are held, whatever the number of draws', async () => {
  using device = Device.open({ threads: 1 });
  const from = device.tensor([ITEMS, 64]);
  fillNormal(device, from, KEY, { std: 1 });
  const ids = device.tensor([TOKENS * 16, DRAWS], 'i32');
  drawNegatives(device, ids, KEY, { kind: 'uniform', count: ITEMS });
  await device.sync();
  const before = device.stats().reservedBytes;
  const buffers = new SegmentBuffers(device, 'f16');
  const segments = new NegativeSegments({ device, buffers, from, ids, size: 50, stream: 'sparse' });
  using copy = device.tensor([1, 64]);
  const seen: Segment[] = [];
  for (const segment of segments) {
    seen.push(segment);
    // As a loss does: another stream reads the rows.
    copyRows(device, { rows: segment.fetched!.rows, from: 0, to: copy, at: 0, count: 1 });
  }
  await device.sync();
  segments.dispose();
  expect(seen.map(({ from, count }) => [from, count])).toEqual(
    Array.from({ length: (TOKENS * 16) / 50 }, (_, i) => [i * 50, 50]),
  );
  const [segment, places] = [50 * DRAWS * (64 * 2 + 4), TOKENS * 16 * DRAWS * 4];
  expect(device.stats().reservedBytes - before).toBeLessThan(2.5 * segment + 1.5 * places + 4 * (ITEMS / 8) + 65_536);
});

test('a segment can be read while the rows of the one after it are fetched', async () => {
  using device = Device.open({ threads: 1 });
  using from = device.tensor([ITEMS, 8]);
  fillNormal(device, from, KEY, { std: 1 });
  using ids = device.tensor([TOKENS, DRAWS], 'i32');
  drawNegatives(device, ids, KEY, { kind: 'uniform', count: ITEMS });
  const buffers = new SegmentBuffers(device, 'f16');
  const segments = new NegativeSegments({ device, buffers, from, ids, size: 9, stream: 'sparse' });
  const each = segments[Symbol.iterator]();
  each.next();
  await device.sync();
  // Long work ahead of the next fetch.
  const [many, few] = [20_000_000, 1].map(count => device.tensor([1, count], 'i32'));
  for (const drawn of [many!, few!]) drawNegatives(device, drawn, KEY, { kind: 'uniform', count: ITEMS }, 'sparse');
  const slow = device.read(few!, 'sparse').then(() => 'fetched');
  const { fetched } = each.next().value; // requests the third segment
  expect(await Promise.race([slow, device.read(fetched.places).then(() => 'read')])).toBe('read');
  await device.sync();
  segments.dispose();
});

test('where all rows fit into two segments, each is fetched once for the whole lane', async () => {
  using device = Device.open({ threads: 1 });
  const from = device.tensor([20 * DRAWS, 64]);
  fillNormal(device, from, KEY, { std: 1 });
  const ids = device.tensor([TOKENS, DRAWS], 'i32');
  drawNegatives(device, ids, KEY, { kind: 'uniform', count: from.rows });
  /** Positions of each segment, and rows that there is room for. */
  const segmentsOf = (size: number): [number, number][] => {
    const buffers = new SegmentBuffers(device, 'f16');
    const segments = new NegativeSegments({ device, buffers, from, ids, size, stream: 'sparse' });
    const seen = [...segments].map(({ count, fetched }): [number, number] => [count, fetched!.rows.rows]);
    segments.dispose();
    return seen;
  };
  expect(segmentsOf(9)).toEqual([...Array.from({ length: 5 }, () => [9, 9 * DRAWS]), [5, 9 * DRAWS]]);
  expect(segmentsOf(10)).toEqual([[TOKENS, 20 * DRAWS]]);
  await device.sync();
});

/** |a - b| / |b|. */
function distance(a: Float32Array, b: Float32Array): number {
  const length = (values: Iterable<number>) => Math.sqrt([...values].reduce((sum, x) => sum + x * x, 0));
  return length(a.map((x, i) => x - b[i]!)) / length(b);
}
