import { expect, test } from 'vitest';
import { Batcher, Expired, Overloaded } from '../../src/server/batcher.js';

const LATER = { size: 1, deadline: Number.POSITIVE_INFINITY };
const options = { maxBatch: 4, maxSize: 100, maxQueue: 10 };

/** Doubles numbers; batches wait for `go`. */
function doubling(overrides: Partial<typeof options> = {}) {
  const batches: number[][] = [];
  let go!: () => void;
  const gate = new Promise<void>(resolve => (go = resolve));
  const batcher = new Batcher<number, number>(
    async requests => {
      batches.push(requests);
      await gate;
      if (requests.includes(13)) throw new Error('thirteen');
      return requests.map(x => 2 * x);
    },
    { ...options, ...overrides },
  );
  return { batcher, batches, go };
}

const turn = () => new Promise(resolve => setTimeout(resolve, 5));

test('what waits while a batch is computed shares the next ones', async () => {
  const { batcher, batches, go } = doubling();
  const first = batcher.submit(0, LATER);
  await turn();
  const rest = [1, 2, 3, 4, 5].map(x => batcher.submit(x, LATER));
  go();
  expect(await Promise.all([first, ...rest])).toEqual([0, 2, 4, 6, 8, 10]);
  expect(batches).toEqual([[0], [1, 2, 3, 4], [5]]);
  await batcher.drain();
  expect(batcher.waiting).toBe(0);
});

test('a batch holds no more than its size, but a large request is computed alone', async () => {
  const { batcher, batches, go } = doubling();
  go();
  const sizes = [60, 50, 40, 500, 1];
  await Promise.all(sizes.map((size, x) => batcher.submit(x, { ...LATER, size })));
  expect(batches).toEqual([[0], [1, 2], [3], [4]]);
});

test('a full queue refuses at once, and works again afterwards', async () => {
  const { batcher, go } = doubling({ maxQueue: 2 });
  const first = batcher.submit(0, LATER);
  await turn();
  const queued = [batcher.submit(1, LATER), batcher.submit(2, LATER)];
  await expect(batcher.submit(3, LATER)).rejects.toThrow(Overloaded);
  go();
  expect(await Promise.all([first, ...queued])).toEqual([0, 2, 4]);
  expect(await batcher.submit(4, LATER)).toBe(8);
});

test('what has waited too long is not computed', async () => {
  const { batcher, batches, go } = doubling();
  const first = batcher.submit(0, LATER);
  await turn();
  const late = batcher.submit(1, { size: 1, deadline: performance.now() + 1 });
  const intime = batcher.submit(2, LATER);
  await turn();
  go();
  await expect(late).rejects.toThrow(Expired);
  expect(await Promise.all([first, intime])).toEqual([0, 4]);
  expect(batches).toEqual([[0], [2]]);
});

test('a request that fails does not fail its neighbours', async () => {
  const { batcher, go } = doubling();
  go();
  const answers = await Promise.allSettled([1, 13, 2].map(x => batcher.submit(x, LATER)));
  expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
});

test('the next batch is under way before the answers of the last one are told', async () => {
  const begun: number[] = [];
  const batcher = new Batcher<number, number>(
    async requests => {
      begun.push(...requests);
      await turn();
      return requests;
    },
    { ...options, maxBatch: 1 },
  );
  const first = batcher.submit(1, LATER).then(() => [...begun]);
  const second = batcher.submit(2, LATER);
  expect(await first).toEqual([1, 2]);
  await second;
});
