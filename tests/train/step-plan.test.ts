import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { BatchPlan, type BatchSize } from '../../src/data/batch/batch-plan.js';
import { trainingWindows, windowTokens } from '../../src/data/batch/windows.js';
import { MemorySource } from '../../src/data/memory-source.js';
import { waitingShare } from '../../src/dist/balance/cost.js';
import { Random } from '../../src/util/random.js';
import { LaneOrder, StepPlans } from '../../src/train/step-plan.js';

const COST = { a: 100, b: 1 };

function plansOf(lengths: readonly number[], size: BatchSize, lanes: number) {
  const offsets = Int32Array.of(0, ...lengths);
  for (let i = 1; i < offsets.length; i++) offsets[i]! += offsets[i - 1]!;
  const item = new Int32Array(offsets.at(-1)!);
  const split = { kind: 'none', trainEnd: Int32Array.from(lengths), validationEnd: Int32Array.from(lengths) };
  const windows = trainingWindows(new MemorySource({ items: 1, offsets, item, split }), 50, 'latest');
  const batches = new BatchPlan({ windows, size, seed: 3 });
  return { windows, batches, plans: new StepPlans({ batches, size, lanes, cost: COST }) };
}

const users = fc.array(fc.integer({ min: 2, max: 60 }), { minLength: 1, maxLength: 60 });
const sizes: fc.Arbitrary<BatchSize> = fc.oneof(
  fc.record({ tokens: fc.integer({ min: 50, max: 200 }) }),
  fc.record({ users: fc.integer({ min: 1, max: 9 }) }),
);

test('an epoch of steps has every window once, no lane beyond its limit, and says its tokens', () => {
  fc.assert(
    fc.property(users, sizes, fc.integer({ min: 1, max: 9 }), (lengths, size, lanes) => {
      const { windows, plans } = plansOf(lengths, size, lanes);
      const seen: number[] = [];
      let cursor = { epoch: 0, position: 0 };
      for (let step = 0; step < plans.steps(0); step++) {
        const plan = plans.at(cursor);
        expect(plan.lanes.length).toBe(lanes);
        const tokens = plan.lanes.map(ids => ids.reduce((sum, id) => sum + windowTokens(windows, id), 0));
        expect(plan.tokens).toBe(tokens.reduce((sum, n) => sum + n, 0));
        const [most, limit] =
          'tokens' in size
            ? [Math.max(...tokens), size.tokens]
            : [Math.max(...plan.lanes.map(ids => ids.length)), size.users];
        expect(most).toBeLessThanOrEqual(limit);
        for (const ids of plan.lanes) seen.push(...ids);
        cursor = plan.next;
      }
      expect(cursor).toEqual({ epoch: 1, position: 0 });
      expect(seen.sort((a, b) => a - b)).toEqual(Array.from({ length: windows.count }, (_, w) => w));
    }),
  );
});

test('one lane is the batch itself, in its order', () => {
  const { batches, plans } = plansOf([9, 30, 4, 60, 12, 7], { tokens: 60 }, 1);
  for (let position = 0; position < batches.batches(0); position++) {
    const at = { epoch: 0, position };
    expect(plans.at(at)).toMatchObject({ at, lanes: [batches.batch(at)], next: batches.advance(at) });
  }
});

test('a step planned again, by somebody else, is the same step', () => {
  const make = () => plansOf([9, 30, 4, 60, 12, 7, 22, 41, 18, 5], { tokens: 60 }, 3).plans;
  const at = { epoch: 1, position: 3 };
  const first = make();
  first.at({ epoch: 0, position: 0 });
  expect(first.at(at)).toEqual(make().at(at));
});

test('lanes are more even than the cuts they are made of', () => {
  const random = new Random(1, 'lengths');
  const lengths = Array.from({ length: 600 }, () => 2 + Math.floor(48 * (random.below(1000) / 1000) ** 4));
  const { windows, plans, batches } = plansOf(lengths, { tokens: 400 }, 4);
  const cost = (ids: Int32Array) => ids.reduce((sum, id) => sum + COST.a * windowTokens(windows, id), 0);
  const dealt = plans.at({ epoch: 0, position: 0 }).lanes.map(cost);
  const cut = [0, 1, 2, 3].map(position => cost(batches.batch({ epoch: 0, position })));
  expect(waitingShare(Float64Array.from(dealt))).toBeLessThanOrEqual(waitingShare(Float64Array.from(cut)));
});

test('a worker reads its lanes step after step, also the empty ones', () => {
  const { plans } = plansOf([9, 30, 4], { users: 1 }, 2);
  const read = (order: LaneOrder) => {
    let place = order.from({ epoch: 0, position: 0 });
    return Array.from({ length: 5 }, () => {
      const seen = [place.epoch, place.lane, order.batch(place).length];
      place = order.next(place);
      return seen;
    });
  };
  expect(read(new LaneOrder(plans)).map(seen => seen.join())).toEqual(['0,0,1', '0,1,1', '0,0,1', '0,1,0', '1,0,1']);
  const second = read(new LaneOrder(plans, { from: 1, to: 2 })).map(seen => seen.join());
  expect(second).toEqual(['0,1,1', '0,1,0', '1,1,1', '1,1,0', '2,1,1']);
});
