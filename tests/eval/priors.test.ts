import { expect, test } from 'vitest';
import { resolveConfig } from '../../src/config/resolve.js';
import type { SequenceSource } from '../../src/data/sequence-source.js';
import { MemorySource } from '../../src/data/memory-source.js';
import { evaluationCases, wholeHistory } from '../../src/eval/cases.js';
import { metricOf } from '../../src/eval/metrics.js';
import { COMPONENTS, FEATURES, SPARSE_COMPONENTS, SPARSE_FEATURES } from '../../src/config/prior-weights.js';
import { fitPriors } from '../../src/eval/priors/fit-priors.js';
import { fitWeights } from '../../src/eval/priors/fit-weights.js';
import { LogPriors } from '../../src/eval/priors/log-priors.js';
import { componentsOf, fitShares } from '../../src/eval/priors/mixture.js';
import { logitRows, priorCases } from '../../src/eval/priors/prior-cases.js';
import { NO_MODEL, PriorScorer } from '../../src/eval/priors/prior-scorer.js';
import { rankWithPriors } from '../../src/eval/priors/rank-with-priors.js';
import { namedWeights } from '../../src/eval/priors/weights.js';
import { rankCases } from '../../src/eval/rank-cases.js';
import { shapeModel } from '../../src/jobs/shape-model.js';
import { SingleRank } from '../../src/dist/comm/single-rank.js';
import { Device } from '../../src/native/device.js';
import { Model } from '../../src/nn/model.js';
import { Random } from '../../src/util/random.js';

const ITEMS = 67;

/** People who mostly come back to one of their last three items. */
function repeatingSource(users: number): MemorySource {
  const random = new Random(5, 'repeating');
  const lengths = Array.from({ length: users }, () => 3 + random.below(25));
  const offsets = Int32Array.from([0, ...lengths]);
  for (let u = 1; u < offsets.length; u++) offsets[u]! += offsets[u - 1]!;
  const item = new Int32Array(offsets.at(-1)!);
  const time = BigInt64Array.from(item, (_, i) => BigInt(1000 + i));
  for (let u = 0; u < users; u++) {
    for (let i = offsets[u]!; i < offsets[u + 1]!; i++) {
      const back = 1 + random.below(3);
      const again = random.uniform() < 0.7 && i - back >= offsets[u]!;
      item[i] = again ? item[i - back]! : random.below(ITEMS);
    }
  }
  return new MemorySource({ items: ITEMS, offsets, item, time });
}

function setting(users: number) {
  const source = repeatingSource(users);
  const config = resolveConfig({ model: { d: 12, maxLength: 10, blocks: 1 } });
  const device = Device.open({ threads: 2 });
  const model = new Model(device, shapeModel(config, source), 3);
  return { source, config, device, ranked: model };
}

const SHARES = Float64Array.from(COMPONENTS, (_, k) => (k + 1) / (COMPONENTS.length * (COMPONENTS.length + 1) * 0.5));
const WEIGHTS = namedWeights(
  Float64Array.from([0.5, 0.3, -0.2, 0.35, 1.5, 0.7, -0.4, -2, 0.9, 0.6, 0.25, 1.1, 0.45, 0.8]),
  SHARES,
);

test.each(['none', 'history', 'input'] as const)(
  'ranks and lists with priors equal brute force: %s excluded',
  async exclude => {
    const { source, device, ranked } = setting(60);
    using _ = device;
    const log = new LogPriors(source, 'test');
    const which = { source, part: 'test', exclude, maxLength: 10 } as const;
    const k = 5;
    const found = await rankWithPriors({ ...which, device, log, weights: WEIGHTS, ranked, listLength: k });
    const { rows, width } = await logitRows(ranked);
    let at = 0;
    for await (const { states, histories, excluded, targets } of priorCases(which, ranked)) {
      for (let c = 0; c < targets.length; c++, at++) {
        const sparse = log.sparse(histories[c]!);
        const scores = Array.from({ length: ITEMS }, (_, item) => {
          const { features } = WEIGHTS;
          const p = componentsOf(log, sparse, item).map((part, k) => part * SHARES[k]!);
          const base = p.slice(SPARSE_COMPONENTS.length).reduce((all, part) => all + part, 0);
          const whole = p.reduce((all, part) => all + part, 0);
          let sum =
            features.popularity * log.popularities[0]![item]! +
            features.recentPopularity * log.popularities[1]![item]! +
            features.base * Math.log(base) +
            features.mixture * Math.log(whole / base);
          for (let d = 0; d < width; d++) sum += features.model * states[c * width + d]! * rows[item * width + d]!;
          const row = sparse.items.indexOf(item);
          if (row < 0) return sum;
          return SPARSE_FEATURES.reduce(
            (all, name, f) => all + features[name] * sparse.values[row * SPARSE_FEATURES.length + f]!,
            sum,
          );
        });
        const target = targets[c]!;
        const better = (margin: number) =>
          scores.filter((s, i) => !excluded[c]!.has(i) && i !== target && s > scores[target]! + margin).length;
        const [least, most] = excluded[c]!.has(target) ? [ITEMS, ITEMS] : [better(1e-5), better(-1e-5)];
        expect(found.ranks[at]).toBeGreaterThanOrEqual(least + 1);
        expect(found.ranks[at]).toBeLessThanOrEqual(most + 1);
        const best = scores.filter((_, i) => !excluded[c]!.has(i)).sort((x, y) => y - x);
        found.lists.subarray(at * k, (at + 1) * k).forEach((item, place) => {
          expect(excluded[c]!.has(item)).toBe(false);
          expect(scores[item]).toBeCloseTo(best[place]!, 4);
        });
      }
    }
    expect(at).toBe(found.ranks.length);
  },
);

test('a model with weight one and no priors ranks as the model does', async () => {
  const { source, device, ranked } = setting(40);
  using _ = device;
  const weights = namedWeights(
    Float64Array.from(FEATURES, name => (name === 'model' ? 1 : 0)),
    SHARES,
  );
  const which = { source, part: 'test', exclude: 'history' } as const;
  const log = new LogPriors(source, 'test');
  const plain = await rankCases({ ...which, model: ranked, listLength: 3 });
  const found = await rankWithPriors({ ...which, maxLength: 10, device, log, weights, ranked, listLength: 3 });
  expect(found.targets).toEqual(plain.targets);
  const differing = found.ranks.filter((rank, c) => rank !== plain.ranks[c]);
  expect(differing.length).toBeLessThanOrEqual(1); // scores that differ by rounding alone may change places
  expect(found.selfFirst).toBe(plain.selfFirst);
});

test('the fit finds that people come back, from validation alone, and says what it is worth', async () => {
  const { source, device, ranked } = setting(300);
  using _ = device;
  const fit = () => fitPriors({ device, source, maxLength: 10, exclude: 'none', ranked, metric: 'ndcg@10' });
  const { weights, alone, together, without, cases } = await fit();
  expect(cases).toBe(300);
  expect(together).toBeGreaterThan(alone + 0.2);
  const { ownAge, ownCount, topSuccessors } = weights.shares; // the most frequent successor of an item is the item itself
  expect(ownAge + ownCount + topSuccessors).toBeGreaterThan(0.35); // 3 of 17 components
  expect(await fit()).toEqual({ weights, alone, together, without, cases });
  expect(weights.features.model === 0).toBe(without > together); // the better of the two
  const log = new LogPriors(source, 'test');
  const which = { source, part: 'test', exclude: 'none', maxLength: 10 } as const;
  const tested = await rankWithPriors({ ...which, device, log, weights, ranked });
  expect(metricOf(tested, 'ndcg@10')).toBeGreaterThan(alone + 0.2);
});

test('what is tested changes nothing that is fitted', async () => {
  const { source, device, ranked } = setting(80);
  using _ = device;
  const { users, items, lengths, split, fingerprint, hasTime, hasAction } = source;
  const guarded: SequenceSource = {
    users,
    items,
    lengths,
    split,
    fingerprint,
    hasTime,
    hasAction,
    length: user => source.length(user),
    read(user, from, to, into, at) {
      if (to > split.validationEnd[user]!) throw new Error('a test event was read');
      source.read(user, from, to, into, at);
    },
  };
  const input = { device, maxLength: 10, exclude: 'none', ranked, metric: 'ndcg@10' } as const;
  expect(await fitPriors({ ...input, source: guarded })).toEqual(await fitPriors({ ...input, source }));
});

test('features of a history', () => {
  const item = Int32Array.from([1, 2, 1, 3, 1, 2, 0, 0]);
  const source = new MemorySource({ items: 5, offsets: Int32Array.of(0, 8), item });
  const log = new LogPriors(source, 'test'); // knows 1 2 1 3 1 2 0
  const features = log.sparse(Int32Array.from([1, 2, 1, 3, 1]));
  const at = (id: number, name: (typeof SPARSE_FEATURES)[number]) =>
    features.values[features.items.indexOf(id) * SPARSE_FEATURES.length + SPARSE_FEATURES.indexOf(name)];
  expect([...features.items].sort((a, b) => a - b)).toEqual([0, 1, 2, 3]);
  expect([at(1, 'own'), at(1, 'last'), at(3, 'own'), at(3, 'last')]).toEqual([1, 1, 1, 0]);
  expect(at(1, 'ownAge')).toBeCloseTo(0);
  expect(at(3, 'ownAge')).toBeCloseTo(-Math.log(2));
  expect(at(2, 'ownAge')).toBeCloseTo(-Math.log(3));
  expect(at(1, 'ownCount')).toBeCloseTo(Math.log(3));
  expect(at(2, 'successor')).toBeCloseTo(Math.log(3)); // 1 was followed by 2 twice
  expect(at(3, 'successorShare')).toBeCloseTo(Math.log1p(100 / 3));
  expect(at(2, 'ownSuccessor')).toBeCloseTo(Math.log(2)); // in this history 1 was followed by 2 once
  expect(at(1, 'near')).toBeGreaterThan(0); // two events after 1
  expect(at(0, 'own')).toBe(0); // a successor of 2, which is in the context
  expect(at(0, 'context')).toBeGreaterThan(0);
});

test('items that the log knows nothing different of are not ordered by id', async () => {
  using device = Device.open({ threads: 1 });
  const item = Int32Array.from({ length: 2 * ITEMS }, (_, i) => i % ITEMS);
  const offsets = Int32Array.of(0, ITEMS, 2 * ITEMS);
  const log = new LogPriors(new MemorySource({ items: ITEMS, offsets, item }), 'future');
  using scorer = new PriorScorer(device, log, { weights: WEIGHTS, logits: NO_MODEL });
  const histories = [Int32Array.of(0)];
  const { ids } = await scorer.lists({ states: NO_MODEL.rows, histories, excluded: [new Set([0])] }, ITEMS - 1);
  const plain = [...ids].filter(id => id > 20); // the others are among the successors
  expect(plain).toHaveLength(ITEMS - 21);
  const rising = plain.filter((id, i) => i > 0 && id > plain[i - 1]!).length;
  expect(rising).toBeGreaterThan(10);
  expect(rising).toBeLessThan(plain.length - 10);
});

test('components are distributions: none of them gives away more than one', () => {
  const source = repeatingSource(50);
  const log = new LogPriors(source, 'test');
  const history = Int32Array.from({ length: 30 }, (_, i) => (i * 7) % 11);
  const sparse = log.sparse(history);
  const sums = new Float64Array(COMPONENTS.length);
  for (let item = 0; item < ITEMS; item++) componentsOf(log, sparse, item).forEach((p, k) => (sums[k]! += p));
  for (const sum of sums) expect(sum).toBeLessThanOrEqual(1 + 1e-9);
  for (const name of ['ownAge', 'ownCount', 'popularity', 'recentPopularity', 'uniform'] as const)
    expect(sums[COMPONENTS.indexOf(name)]).toBeCloseTo(1);
});

test('top successors have the fourth powers of the shares of the successors', () => {
  const item = Int32Array.of(0, 1, 0, 1, 0, 1, 0, 2, 0, 2, 0, 3); // after 0: three times 1, twice 2, once 3
  const log = new LogPriors(new MemorySource({ items: ITEMS, offsets: Int32Array.of(0, item.length), item }), 'future');
  const sparse = log.sparse(Int32Array.of(0));
  const top = [1, 2, 3, 4].map(id => componentsOf(log, sparse, id)[COMPONENTS.indexOf('topSuccessors')]!);
  const total = 3 ** 4 + 2 ** 4 + 1;
  [81, 16, 1, 0].forEach((count, i) => expect(top[i]).toBeCloseTo(count / total, 12));
});

test('shares of a mixture are recovered from its own draws', () => {
  const random = new Random(13, 'mixture');
  const found = Array.from({ length: 5000 }, () => {
    const p = new Float64Array(COMPONENTS.length);
    const drawn = random.uniform() < 0.7 ? 0 : 5; // two dice, one of which shows 1 in four of five throws
    const one = random.uniform() < (drawn === 0 ? 0.8 : 0.1);
    p[0] = one ? 0.8 : 0.2;
    p[5] = one ? 0.1 : 0.9;
    return p;
  });
  const shares = fitShares(found);
  expect(Math.abs(shares[0]! - 0.7)).toBeLessThan(0.03);
  expect(Math.abs(shares[5]! - 0.3)).toBeLessThan(0.03);
  expect(shares.reduce((sum, share) => sum + share, 0)).toBeCloseTo(1);
});

test('weights of a conditional logit are recovered from its own draws', async () => {
  const truth = [1.5, -0.8, 0];
  const random = new Random(11, 'logit');
  const cases = 3000;
  const x = new Float32Array(cases * 5 * 3);
  const starts = [0];
  for (let c = 0; c < cases; c++) {
    const rows = Array.from({ length: 5 }, () => truth.map(() => random.normal()));
    const gumbel = rows.map(row => row.reduce((sum, v, f) => sum + v * truth[f]!, -Math.log(random.exponential())));
    const chosen = gumbel.indexOf(Math.max(...gumbel));
    const ordered = [rows[chosen]!, ...rows.filter((_, r) => r !== chosen)];
    x.set(ordered.flat(), c * 15);
    starts.push(5 * (c + 1));
  }
  const choices = { x, offset: new Float32Array(cases * 5), starts };
  const how = { start: new Float64Array(3), free: [true, true, false], ridge: 1, world: new SingleRank() };
  const fitted = await fitWeights([choices], how);
  expect(fitted[0]).toBeCloseTo(1.5, 0);
  expect(Math.abs(fitted[0]! - 1.5)).toBeLessThan(0.15);
  expect(Math.abs(fitted[1]! + 0.8)).toBeLessThan(0.1);
  expect(fitted[2]).toBe(0);
});

test('the priors know the whole history, however little the model reads', () => {
  const source = new MemorySource({
    items: 30,
    offsets: Int32Array.of(0, 20),
    item: Int32Array.from({ length: 20 }, (_, i) => i),
  });
  for (const { batch } of evaluationCases({ source, part: 'test', maxLength: 5, exclude: 'none' })) {
    expect([...wholeHistory(source, batch, 0)]).toEqual(Array.from({ length: 19 }, (_, i) => i));
  }
});
