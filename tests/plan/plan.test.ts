import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { spawnSync } from 'node:child_process';
import { afterAll, expect, test } from 'vitest';
import { resolveConfig } from '../../src/config/resolve.js';
import { choose } from '../../src/plan/choose.js';
import { atPeak, type Costs } from '../../src/plan/costs.js';
import { fitCrowding } from '../../src/plan/crowding.js';
import { featuresOf, fitCosts, laneSeconds } from '../../src/plan/fit.js';
import { type Cluster, predict, type Staleness } from '../../src/plan/predict.js';
import { planRows } from '../../src/plan/table.js';
import { collisions, popularity, uniqueRows, type Workload, workloadOf } from '../../src/plan/workload.js';
import { Random } from '../../src/util/random.js';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'turbogr-plan-'));
afterAll(() => rmSync(folder, { recursive: true }));

const COSTS: Costs = {
  machine: 'made up',
  peak: 1e11,
  crowding: [],
  compute: { flop: 2e-11, narrow: 1e-9, lossFlop: 3e-11, rowByte: 1e-9, parameter: 1e-9, lane: 1e-3 },
  memory: { latency: 1e-4, peer: 1e-5, rate: 1e9 },
  link: { latency: 2e-4, peer: 1e-5, share: 0.95 },
};
const CLUSTER: Cluster = { hosts: 4, coresPerHost: 8, ranksPerHost: 8, bitsPerSecond: 1e9, memoryPerHost: 64e9 };

function work(settings: { d?: number; blocks?: number; tokens?: number; items?: number } = {}): Workload {
  const { d = 256, blocks = 4, tokens = 4096, items = 1_000_000 } = settings;
  const config = resolveConfig({
    model: { d, blocks, heads: 4, maxLength: 200 },
    loss: { negatives: { count: 512, pool: 512 } },
    optimizer: { table: 'row-adagrad' },
    batch: { tokens },
  });
  return workloadOf(config, { items, lengths: [200, 100] });
}

/** Draws as the model has them: Zipf by id^u, and uniform ones. */
function drawSet(random: Random, items: number, popular: number, uniform: number): Set<number> {
  const set = new Set<number>();
  for (let i = 0; i < popular; i++) set.add(Math.min(items - 1, Math.floor(items ** random.uniform()) - 1));
  for (let i = 0; i < uniform; i++) set.add(random.below(items));
  return set;
}

test('different rows and collisions are those of drawn sets', () => {
  const random = new Random(1, 'plan test');
  const log = { items: 20_000, lengths: [1] };
  const bins = popularity(log);
  const [one, other] = [
    { popular: 2000, uniform: 500 },
    { popular: 8000, uniform: 2000 },
  ];
  let [unique, common] = [0, 0];
  const rounds = 20;
  for (let i = 0; i < rounds; i++) {
    const read = drawSet(random, log.items, one.popular, one.uniform);
    const changed = drawSet(random, log.items, other.popular, other.uniform);
    unique += read.size / rounds;
    common += [...read].filter(row => changed.has(row)).length / read.size / rounds;
  }
  expect(uniqueRows(bins, one) / unique).toBeCloseTo(1, 1);
  expect(collisions(bins, one, other) / common).toBeCloseTo(1, 1);
});

test('counts of a log replace Zipf', () => {
  const counts = new Int32Array(1000).fill(1);
  const even = uniqueRows(popularity({ items: 1000, lengths: [1], counts }), { popular: 1000, uniform: 0 });
  expect(even).toBeCloseTo(1000 * (1 - (1 - 1 / 1000) ** 1000), 0);
});

test('the fit finds the constants that made the times', () => {
  const sizes = [64, 128, 256, 512].flatMap(d =>
    [
      [2, 1024],
      [4, 4096],
      [3, 2048],
    ].map(([blocks, tokens]) => work({ d, blocks: blocks!, tokens: tokens!, items: 50_000 })),
  );
  const lanes = sizes.map(size => ({ work: size, seconds: laneSeconds(COSTS.compute, size) }));
  const exchange = { latency: 1e-4, rate: 1e9 };
  const fitted = fitCosts({
    machine: 'x',
    peak: 1e11,
    cores: 2,
    lanes,
    two: exchange,
    four: exchange,
    link: { ...exchange, bitsPerSecond: 1e10 },
  });
  const other = work({ d: 192, blocks: 3, tokens: 3000, items: 50_000 });
  expect(laneSeconds(fitted.compute, other) / laneSeconds(COSTS.compute, other)).toBeCloseTo(1, 2);
  expect(Object.values(featuresOf(other)).every(value => value > 0)).toBe(true);
  expect(fitted.link.share).toBeCloseTo(0.8);
});

test('how much ranks slow each other down is found from steps, and holds between the numbers that were measured', () => {
  const host = { coresPerHost: 2, bitsPerSecond: 1e9, memoryPerHost: 64e9 };
  const crowded = {
    ...COSTS,
    crowding: [
      { perCore: 1, factor: 1.1, step: 0.002 },
      { perCore: 2, factor: 1.3, step: 0.01 },
    ],
  };
  const step = (costs: Costs, ranks: number, size = work()) =>
    predict(
      costs,
      size,
      { ...host, hosts: 1, ranksPerHost: ranks },
      { ranks, groupSize: ranks, lanesPerRank: 1, staleness: 0 },
    );
  const measured = [2, 4].flatMap(ranks =>
    [work(), work({ d: 128, tokens: 1024 })].map(size => ({
      work: size,
      ranks,
      seconds: step(crowded, ranks, size).stepSeconds,
    })),
  );
  const found = fitCrowding(COSTS, host, measured);
  found.forEach(({ perCore, factor, step: added }, i) => {
    expect(perCore).toBe(crowded.crowding[i]!.perCore);
    expect(factor).toBeCloseTo(crowded.crowding[i]!.factor, 2);
    expect(added / crowded.crowding[i]!.step).toBeCloseTo(1, 1);
  });
  const factors = [1, 2, 3, 4, 8].map(ranks => step(crowded, ranks).computeSeconds / step(COSTS, ranks).computeSeconds);
  [1, 1.1, 1.2, 1.3, 1.3].forEach((factor, i) => expect(factors[i]).toBeCloseTo(factor));
  const unslowed = { ...crowded, crowding: crowded.crowding.map(point => ({ ...point, step: 0 })) };
  const added = [1, 2, 3, 4, 8].map(ranks => step(crowded, ranks).stepSeconds - step(unslowed, ranks).stepSeconds);
  [0, 0.002, 0.006, 0.01, 0.01].forEach((seconds, i) => expect(added[i]).toBeCloseTo(seconds, 6));
});

test('a core of half the speed computes twice as long, and exchanges as before', () => {
  const at = (costs: Costs) => predict(costs, work(), CLUSTER, layout(32, 0));
  const [usual, slow] = [at(COSTS), at(atPeak(COSTS, 5e10))];
  expect(slow.computeSeconds / usual.computeSeconds).toBeCloseTo(2);
  expect(slow.linkBytes).toEqual(usual.linkBytes);
});

test('where gradients are clipped, exact waits for those of all rows', () => {
  const exact = (clips: boolean) => predict(COSTS, { ...work(), clips }, CLUSTER, layout(8, 'exact')).exposedSeconds;
  expect(exact(true)).toBeGreaterThan(1.5 * exact(false));
});

const layout = (groupSize: number, staleness: Staleness = 0) => ({ ranks: 32, groupSize, lanesPerRank: 1, staleness });

test('one rank exposes nothing', () => {
  const alone = predict(COSTS, work(), CLUSTER, { ranks: 1, groupSize: 1, lanesPerRank: 1, staleness: 0 });
  expect(alone).toMatchObject({ exposedSeconds: 0, linearity: 1, computeRatio: 1 });
  expect(Object.values(alone.linkBytes)).toEqual([0, 0, 0, 0]);
});

test('groups of a host keep rows off the link and hold more; stale rows cost no time', () => {
  const [flat, grouped] = [predict(COSTS, work(), CLUSTER, layout(32)), predict(COSTS, work(), CLUSTER, layout(8))];
  expect(grouped.linkBytes.rows).toBe(0);
  expect(flat.linkBytes.rows).toBeGreaterThan(0);
  expect(flat.linkBytes.betweenGroups).toBe(0);
  expect(grouped.linkBytes.betweenGroups).toBeGreaterThan(0);
  expect(grouped.linkBytes.dense).toBe(flat.linkBytes.dense);
  expect(grouped.memoryPerRank).toBeGreaterThan(flat.memoryPerRank);
  const times = ([0, 'exact', 1] as const).map(staleness => predict(COSTS, work(), CLUSTER, layout(8, staleness)));
  expect(times[1]!.stepSeconds).toBeLessThan(times[0]!.stepSeconds);
  expect(times[2]!.stepSeconds).toBeLessThan(times[1]!.stepSeconds);
  expect(times[2]!.alpha).toBeGreaterThan(0);
});

test('a table that is too large for a group makes groups larger, and the reason is given', () => {
  const input = { costs: COSTS, work: work({ items: 100_000_000 }), cluster: CLUSTER, lanesPerRank: 1 };
  const { best, reasons } = choose(input);
  expect(best.memoryPerRank).toBeLessThanOrEqual(CLUSTER.memoryPerHost / CLUSTER.ranksPerHost);
  expect(best.groupSize).toBe(32);
  expect(reasons.join('\n')).toContain('per rank, and there are 8.0 GB');
  expect(choose({ ...input, work: work() }).reasons.join('\n')).not.toContain('and there are');
});

test('rows go to 1,024 ranks', () => {
  const rows = planRows({ costs: COSTS, work: work(), cluster: CLUSTER, lanesPerRank: 1 });
  expect(Math.max(...rows.map(({ ranks }) => ranks))).toBe(1024);
  expect(rows.every(({ stepSeconds, linearity }) => Number.isFinite(stepSeconds) && linearity <= 1)).toBe(true);
});

const plan = (...args: string[]) => spawnSync(process.execPath, [MAIN, 'plan', ...args], { encoding: 'utf8' });

test('the command says what to train with, and refuses costs that were not measured', () => {
  const costs = join(folder, 'costs.json');
  const flags = ['--items', '1000000', '--hosts', '4', '--cores', '8', '--gbit', '1', '--costs', costs];
  const missing = plan(...flags);
  expect(missing.stderr).toContain('turbogr plan --calibrate');
  expect(missing.status).toBe(2);
  writeFileSync(costs, JSON.stringify(COSTS));
  const { stdout, status } = plan(...flags);
  expect(status).toBe(0);
  expect(stdout).toContain('All figures are simulated');
  expect(stdout).toMatch(/train with: --group-size \d+ --set batch.lanes=32/);
  const { simulated, rows }: { simulated: boolean; rows: unknown[] } = JSON.parse(plan(...flags, '--json').stdout);
  expect(simulated).toBe(true);
  expect(rows.length).toBeGreaterThan(30);
});
