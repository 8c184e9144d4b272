// Reallocation is a permutation, the same on every rank, and near the optimum; the fit finds the cost behind the times.
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { flopCost, largestDifference, loadsOf, sequenceCost, waitingShare } from '../../src/dist/balance/cost.js';
import { CostFit } from '../../src/dist/balance/cost-fit.js';
import { reallocate } from '../../src/dist/balance/reallocate.js';
import { Random } from '../../src/util/random.js';

const model = flopCost({ parameters: 84e6, width: 1024, blocks: 16 });
const lengthsOf = fc.array(fc.integer({ min: 1, max: 5000 }), { maxLength: 200 }).map(list => Int32Array.from(list));
const ranksOf = fc.integer({ min: 1, max: 40 });

/** Windows of a lognormal user population, as sliding windows give them. */
function lognormalWindows(count: number, longest: number): Int32Array {
  const random = new Random(5, 'lengths');
  const windows: number[] = [];
  while (windows.length < count) {
    let left = Math.round(Math.exp(9.06 + 0.8 * random.normal()));
    for (; left > 0; left -= longest) windows.push(Math.min(left, longest));
  }
  const lengths = Int32Array.from(windows.slice(0, count));
  random.shuffle(lengths);
  return lengths;
}

describe('reallocate', () => {
  test('gives every sequence to exactly one of the ranks', () => {
    fc.assert(
      fc.property(lengthsOf, ranksOf, (lengths, ranks) => {
        const owner = reallocate(lengths, ranks, model);
        expect(owner.length).toBe(lengths.length);
        for (const rank of owner) expect(rank >= 0 && rank < ranks).toBe(true);
        const { tokens } = loadsOf(lengths, owner, ranks, model);
        expect(tokens.reduce((x, y) => x + y, 0)).toBe(lengths.reduce((x, y) => x + y, 0));
      }),
    );
  });

  test('is deterministic and leaves its input alone', () => {
    fc.assert(
      fc.property(lengthsOf, ranksOf, (lengths, ranks) => {
        const before = lengths.slice();
        expect(reallocate(lengths, ranks, model)).toEqual(reallocate(lengths.slice(), ranks, model));
        expect(lengths).toEqual(before);
      }),
    );
  });

  test('stays within the bound of longest-first: the mean plus one sequence', () => {
    fc.assert(
      fc.property(lengthsOf, ranksOf, (lengths, ranks) => {
        if (lengths.length === 0) return;
        const { cost } = loadsOf(lengths, reallocate(lengths, ranks, { a: 1, b: 0 }), ranks, { a: 1, b: 0 });
        const total = cost.reduce((x, y) => x + y, 0);
        expect(Math.max(...cost)).toBeLessThanOrEqual(total / ranks + Math.max(...lengths));
      }),
    );
  });

  test('finds the optimum of small cases within a few per cent', () => {
    const random = new Random(9, 'small');
    for (let example = 0; example < 30; example++) {
      const lengths = Int32Array.from({ length: 10 }, () => 1 + random.below(2000));
      const costs = [...lengths].map(n => sequenceCost(n, model));
      const total = costs.reduce((x, y) => x + y, 0);
      let best = total;
      for (let mask = 0; mask < 1 << 9; mask++) {
        const one = costs.reduce((sum, cost, i) => sum + ((mask >> i) & 1) * cost, 0);
        best = Math.min(best, Math.max(one, total - one));
      }
      const ours = Math.max(...loadsOf(lengths, reallocate(lengths, 2, model), 2, model).cost);
      expect(ours).toBeLessThan(1.1 * best);
    }
  });

  test.each([
    [8, 80, 0.01],
    [32, 320, 0.01],
    [128, 1280, 0.02],
  ])('at %i ranks waits less than its target, and keeps tokens even', (ranks, sequences, target) => {
    const lengths = lognormalWindows(sequences, 4096);
    const loads = loadsOf(lengths, reallocate(lengths, ranks, model), ranks, model);
    expect(waitingShare(loads.cost)).toBeLessThan(target);
    expect(largestDifference(loads.tokens)).toBeLessThan(4096 / 2);
  });

  test('refinement beats longest-first alone', () => {
    // 3 3 2 2 2 on two ranks: longest-first ends at 7 against 5, an exchange makes it 6 and 6.
    const linear = { a: 1, b: 0 };
    const lengths = Int32Array.of(3, 3, 2, 2, 2);
    expect([...loadsOf(lengths, reallocate(lengths, 2, linear), 2, linear).cost]).toEqual([6, 6]);
  });

  test('lets a sequence longer than a fair share be, and evens out the others', () => {
    const lengths = Int32Array.of(30_000, ...Array(64).fill(100));
    const owner = reallocate(lengths, 4, { a: 1, b: 0 });
    const { tokens } = loadsOf(lengths, owner, 4, { a: 1, b: 0 });
    const others = [...tokens].toSorted((x, y) => x - y).slice(0, 3);
    expect(Math.max(...tokens)).toBe(30_000);
    expect(others[2]! - others[0]!).toBeLessThanOrEqual(100);
  });

  test('refuses a world of no ranks', () => {
    expect(() => reallocate(Int32Array.of(1), 0, model)).toThrow('got 0');
  });
});

describe('cost', () => {
  test('is linear in tokens plus quadratic in length', () => {
    expect(sequenceCost(10, { a: 2, b: 3 })).toBe(2 * 10 + 3 * 100);
  });

  test("counts the FLOPs of the paper's HSTU-large and FuXi-large", () => {
    expect(flopCost({ parameters: 83.97e6, width: 1024, blocks: 16 })).toEqual({ a: 6 * 83.97e6, b: 98_304 });
    const fuxi = { parameters: 201.55e6, width: 1024, blocks: 16, channels: 2 };
    expect(flopCost(fuxi)).toEqual({ a: 6 * 201.55e6, b: 196_608 });
  });

  test('adds up by rank', () => {
    const loads = loadsOf(Int32Array.of(1, 2, 3), Int32Array.of(1, 0, 1), 2, { a: 1, b: 1 });
    expect([...loads.tokens]).toEqual([2, 4]);
    expect([...loads.cost]).toEqual([6, 14]);
  });
});

describe('waitingShare', () => {
  test('is the mean wait over the step', () => {
    expect(waitingShare(Float64Array.of(1, 1, 2))).toBeCloseTo(1 - 4 / 3 / 2, 12);
    expect(waitingShare(Float64Array.of(0, 0))).toBe(0);
  });
});

describe('CostFit', () => {
  const truth = { a: 3e-7, b: 9e-11 };
  /** Steps of 8k tokens or so, with noise and now and then a pause. */
  function* steps(count: number, noise: number) {
    const random = new Random(2, 'steps');
    for (let i = 0; i < count; i++) {
      const lengths = Array.from({ length: 2 + random.below(6) }, () => 1 + random.below(3000));
      const tokens = lengths.reduce((sum, n) => sum + n, 0);
      const squares = lengths.reduce((sum, n) => sum + n * n, 0);
      const pause = random.uniform() < noise ? 3 : 1;
      const seconds = (truth.a * tokens + truth.b * squares) * (1 + noise * random.normal()) * pause;
      yield { tokens, squares, seconds };
    }
  }

  test('starts from the given model', () => {
    expect(new CostFit(model).model).toEqual(model);
  });

  test('finds the cost behind exact times', () => {
    const fit = new CostFit(model);
    for (const step of steps(500, 0)) fit.observe(step);
    expect(fit.model.a / truth.a).toBeCloseTo(1, 2);
    expect(fit.model.b / truth.b).toBeCloseTo(1, 2);
  });

  test('is not led astray by noise and pauses', () => {
    const fit = new CostFit(model);
    for (const step of steps(2000, 0.02)) fit.observe(step);
    const ratio = fit.model.b / fit.model.a / (truth.b / truth.a);
    expect(Math.abs(ratio - 1)).toBeLessThan(0.15);
  });

  test('stays finite and positive when every step is alike', () => {
    const fit = new CostFit(model);
    for (let i = 0; i < 20_000; i++) fit.observe({ tokens: 8192, squares: 8192 * 1024, seconds: 0.5 });
    const { a, b } = fit.model;
    expect(a * 8192 + b * 8192 * 1024).toBeCloseTo(0.5, 6);
    expect(Math.min(a, b)).toBeGreaterThanOrEqual(0);
    // Forgetting has not made the fit so unsure that one step could overturn it.
    expect(Math.max(...fit.state.spread)).toBeLessThan(1000);
  });

  test('restored from JSON goes on bit for bit', () => {
    fc.assert(
      fc.property(fc.nat({ max: 60 }), stop => {
        const whole = new CostFit(model);
        let resumed = new CostFit(model);
        let i = 0;
        for (const step of steps(60, 0.05)) {
          if (i++ === stop) resumed = CostFit.restore(JSON.parse(JSON.stringify(resumed.state)));
          whole.observe(step);
          resumed.observe(step);
        }
        expect(resumed.state).toEqual(whole.state);
        expect(resumed.model).toEqual(whole.model);
      }),
      { numRuns: 20 },
    );
  });

  test('leaves out steps that measured nothing', () => {
    const fit = new CostFit(model);
    fit.observe({ tokens: 0, squares: 0, seconds: 0.1 });
    fit.observe({ tokens: 10, squares: 100, seconds: Number.NaN });
    expect(fit.state.observations).toBe(0);
  });
});
