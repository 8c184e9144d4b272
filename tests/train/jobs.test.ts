import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type ConfigInput,
  evaluate,
  exportWeights,
  type ModelDefinition,
  matrix,
  openRecommender,
  ops,
  prepare,
  resume,
  type RunEvent,
  synthesize,
  train,
  type TrainReport,
  UserError,
  xavierUniform,
} from '../../src/index.js';
import { presetOptions } from '../../src/data/prepare/presets.js';

const folder = mkdtempSync(join(tmpdir(), 'turbogr-jobs-'));
const log = join(folder, 'log.csv');
const run = join(folder, 'run');
const CONFIG: ConfigInput = {
  recipe: 'plain',
  model: { d: 24, blocks: 1, maxLength: 40, dropout: 0.1 },
  loss: { negatives: { count: 32 } },
  optimizer: { lr: 1e-2 },
  batch: { tokens: 512 },
  epochs: 12,
  evaluation: { cutoffs: [10] },
};
let report: TrainReport;

beforeAll(async () => {
  await synthesize({ out: log, users: 200, videos: 150, meanLength: 30, margin: false });
  report = await train({ data: log, config: CONFIG, run });
}, 60_000);
afterAll(() => rmSync(folder, { recursive: true }));

test('a log file is prepared, trained on and tested in one call, and the model beats popularity', () => {
  expect(report).toMatchObject({ run, reason: 'epochs', metric: 'ndcg@10', seed: 1 });
  expect(report.digest).toMatch(/^[0-9a-f]{64}$/);
  const { metrics, exclude, cases } = report.test!;
  expect(Object.keys(metrics)).toEqual(['model', 'popularity', 'first-order Markov', 'recency', 'blend']);
  expect({ exclude, cases }).toEqual({ exclude: 'history', cases: 200 });
  expect(metrics['model']!['hr@10']!.value).toBeGreaterThan(metrics['popularity']!['hr@10']!.value);
});

test('evaluating the run later gives the same figures', async () => {
  const again = await evaluate(run);
  expect(again.metrics).toEqual(report.test!.metrics);
  const unfiltered = await evaluate(run, { exclude: 'none', part: 'validation' });
  expect(unfiltered).toMatchObject({ exclude: 'none', part: 'validation', fingerprint: again.fingerprint });
});

test('a finished run that is resumed trains no further and keeps its weights', async () => {
  expect(await resume(run)).toMatchObject({ step: report.step, digest: report.digest });
});

test('a folder that holds another run is refused', async () => {
  const other = train({ data: log, config: { ...CONFIG, seed: 2 }, run });
  await expect(other).rejects.toThrow('holds another run: seed 1, now 2');
});

test('recommendations are in the ids of the log, for known users and for new ones', async () => {
  using recommender = openRecommender(run);
  const history = recommender.historyOf(3);
  const top = await recommender.recommend(history, { k: 5 });
  expect(top).toHaveLength(5);
  const seen = new Set(history.map(event => event.item));
  for (const { item } of top) expect(seen.has(item)).toBe(false);
  const someone = history.slice(0, 3).map(event => event.item);
  expect(await recommender.recommend(someone, { k: 3 })).toHaveLength(3);
  expect(await recommender.recommend([...someone, 'no such video'], { k: 3, unknown: 'skip' })).toEqual(
    await recommender.recommend(someone, { k: 3 }),
  );
});

test('what cannot be answered is refused with the reason', async () => {
  using recommender = openRecommender(run);
  await expect(recommender.recommend(['no such video'])).rejects.toThrow('no such video');
  await expect(recommender.recommend(['1'], { k: 0 })).rejects.toThrow('k is 0');
  expect(() => recommender.historyOf('nobody')).toThrow(UserError);
  expect(() => openRecommender(folder)).toThrow('holds no run');
});

test('exported weights come back: the same answers, and a start from where the other run ended', async () => {
  const file = join(folder, 'weights.safetensors');
  await exportWeights(run, file);
  {
    using original = openRecommender(run);
    using imported = openRecommender(run, { weights: file });
    const history = original.historyOf(1);
    expect(await imported.recommend(history)).toEqual(await original.recommend(history));
  }
  const losses: number[] = [];
  const onEvent = (event: RunEvent) => {
    if (event.kind === 'step') losses.push(event.loss);
  };
  const config = { ...CONFIG, maxSteps: 1 };
  const data = join(run, 'store');
  await train({ data, config, run: join(folder, 'fresh'), onEvent });
  await train({ data, config, run: join(folder, 'warm'), initialWeights: file, onEvent });
  expect(losses[1]).toBeLessThan(losses[0]! - 1);
  const wide = train({
    data,
    config: { ...config, model: { d: 32 } },
    run: join(folder, 'wide'),
    initialWeights: file,
  });
  await expect(wide).rejects.toThrow('"items"');
  await expect(train({ data, config, initialWeights: 'no-such-file' })).rejects.toThrow('no-such-file does not exist');
});

/** A bag of the history, in two ops: not a good model, but one that is not ours. */
function ownModel(d: number, maxLength: number): ModelDefinition {
  return {
    kind: 'own',
    d,
    maxLength,
    parameters: [matrix('mix', [d, 3 * d], xavierUniform(d, 3 * d)), matrix('out', [d, d], xavierUniform(d, d))],
    forward({ tape, x, tokens, weights }) {
      const y = ops.normLinear(tape, x, weights('mix'), { norm: 'rms', act: 'silu' });
      const qkv = { q: y.columns(0, d), k: y.columns(d, d), v: y.columns(2 * d, d) };
      const o = ops.softmaxAttention(tape, qkv, { offsets: tokens.offsets, heads: 2 });
      return ops.linearResidual(tape, { x: o, residual: x }, weights('out'));
    },
    flops: n => 6 * 4 * d * d * n,
  };
}

test('a custom model trains, resumes and recommends like the built-in ones', async () => {
  const own = join(folder, 'own');
  const model = () => ownModel(24, 40);
  const trained = await train({ data: join(run, 'store'), config: CONFIG, run: own, model });
  const { metrics } = trained.test!;
  expect(metrics['model']!['hr@10']!.value).toBeGreaterThan(metrics['popularity']!['hr@10']!.value);
  expect((await resume(own, { model })).digest).toBe(trained.digest);
  using recommender = openRecommender(own, { model });
  expect(await recommender.recommend(recommender.historyOf(0), { k: 4 })).toHaveLength(4);
});

test('train+validation leaves nothing to choose by, and says so by having no best epoch', async () => {
  const config: ConfigInput = { ...CONFIG, trainOn: 'train+validation', epochs: 1 };
  const both = await train({ data: join(run, 'store'), config, run: join(folder, 'both') });
  expect(both.best).toBeNull();
  expect(both.test?.cases).toBe(200);
});

test('item features from the store are added to the input, and an unknown one is refused by name', async () => {
  const kuairand = join(folder, 'kuairand');
  await synthesize({ out: kuairand, variant: 'pure', users: 60, videos: 80, meanLength: 20, margin: false });
  const store = join(folder, 'kuairand-store');
  await prepare({ files: [], ...presetOptions('kuairand-pure', [kuairand], { keepAll: true }), out: store });
  const withFeatures = (...sideFeatures: string[]) =>
    train({
      data: store,
      config: { ...CONFIG, epochs: 1, model: { ...CONFIG.model, actions: true, sideFeatures } },
      run: join(folder, `features-${sideFeatures.join('-')}`),
    });
  const { parameters } = await withFeatures('upload_type', 'tag');
  expect(parameters.tableParameters).toBeGreaterThan(80 * 24);
  await expect(withFeatures('no_such_column')).rejects.toThrow('"no_such_column"');
});
