// The whole job of training: data, device, model, loop, and the test at the end with the weights that validation chose.

import { existsSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { resolveConfig, type UncheckedConfig } from '../config/resolve.js';
import type { ConfigInput, ResolvedConfig } from '../config/schema.js';
import type { Progress } from '../data/prepare/options.js';
import { SequenceStore } from '../data/store/sequence-store.js';
import { countItems } from '../eval/baselines.js';
import { logLikelihood } from '../eval/log-likelihood.js';
import { metricOf } from '../eval/metrics.js';
import { rankCases } from '../eval/rank-cases.js';
import type { EvaluationReport } from '../eval/report.js';
import type { RunEvent } from '../events/event.js';
import { Device } from '../native/device.js';
import type { ModelDefinition } from '../nn/definition.js';
import { Learner } from '../train/learner.js';
import { RunFolder } from '../train/run-folder.js';
import { planBatches, plannedSteps } from '../train/plan-batches.js';
import { Trainer, type TrainingResult } from '../train/trainer.js';
import { writeFileAtomic } from '../util/atomic-file.js';
import { UserError } from '../util/errors.js';
import { lockFolder } from '../util/folder-lock.js';
import { sha256File } from '../util/hash.js';
import { evaluateModel } from './evaluate.js';
import { measurePeak } from './measure-peak.js';
import { openData, type PrepareChoices } from './open-data.js';
import { shapeModel } from './shape-model.js';

/** Builds a model of one's own; `hasTime` says whether batches carry times. */
export type ModelBuilder = (config: ResolvedConfig, hasTime: boolean) => ModelDefinition;

export interface TrainOptions {
  /** A store made by `prepare`, or a log file, which is prepared first. */
  data: string;
  /** Several are merged, the later ones winning. */
  config?: ConfigInput | (ConfigInput | UncheckedConfig)[];
  /** Columns and filters, when `data` is a log file. */
  prepare?: PrepareChoices;
  /** Folder of the run; `runs/<data>-<model>` unless given. */
  run?: string;
  /** A model of one's own instead of the config's. */
  model?: ModelBuilder;
  /** Start from the weights of this safetensors file instead of random ones. */
  initialWeights?: string;
  /** Called once, before the first step. */
  onStart?: (start: TrainStart) => void;
  onEvent?: (event: RunEvent) => void;
  /** How far the preparation of a log file is. */
  onPrepare?: (progress: Progress) => void;
  /** Aborting finishes the step, writes a checkpoint and returns. */
  signal?: AbortSignal;
}

export interface TrainStart {
  run: string;
  config: ResolvedConfig;
  users: number;
  items: number;
  tokensPerEpoch: number;
  totalSteps: number;
  denseParameters: number;
  blockParameters: number;
  tableParameters: number;
  peakFlops: number;
}

/** What `report.json` holds. */
export interface TrainReport extends Omit<TrainingResult, 'early'> {
  run: string;
  best: { value: number; step: number; epoch: number } | null;
  metric: string;
  /** SHA-256 of the weights that were tested: the best validated ones, the last ones without validation. */
  digest: string;
  seed: number;
  threads: number;
  parameters: { blockParameters: number; denseParameters: number; tableParameters: number };
  /** Absent when the run was interrupted, or when the split holds out no test events. */
  test?: EvaluationReport;
}

/** Trains a new run, or continues the one in the folder if it is the same. */
export async function train(options: TrainOptions): Promise<TrainReport> {
  const config = resolveConfig(...[options.config ?? {}].flat());
  const initial = options.initialWeights;
  if (initial !== undefined && !existsSync(initial)) {
    const remedy = 'Give a safetensors file that `turbogr export` wrote.';
    throw new UserError('no-weights', `${initial} does not exist`, remedy);
  }
  const name = basename(options.data).replace(/\..*$/, '');
  const path = options.run ?? join('runs', `${name}-${config.recipe ?? config.model.kind}`);
  const source = await openData(options, path);
  const { fingerprint, items, folder } = source;
  const run = RunFolder.create(path, {
    config,
    store: resolve(folder),
    fingerprint,
    items,
    ...(initial !== undefined && { initialWeights: { path: resolve(initial), sha256: sha256File(initial) } }),
  });
  return runJob(run, source, options);
}

/** Continues an interrupted run; one that had ended is only tested again. */
export async function resume(
  path: string,
  options: Omit<TrainOptions, 'data' | 'config' | 'run' | 'initialWeights'> = {},
): Promise<TrainReport> {
  const run = RunFolder.open(path);
  const source = SequenceStore.open(run.description.store);
  if (source.fingerprint !== run.description.fingerprint) {
    throw new UserError(
      'other-data',
      `${run.description.store} holds another split than the run began with`,
      'Prepare the log as it was, or train a new run.',
    );
  }
  return runJob(run, source, options);
}

async function runJob(
  run: RunFolder,
  source: SequenceStore,
  options: Omit<TrainOptions, 'data'>,
): Promise<TrainReport> {
  using _alone = lockFolder(run.path);
  const { config } = run.description;
  const device = Device.open(config.threads === undefined ? {} : { threads: config.threads });
  try {
    const shape = shapeModel(config, source, options.model);
    const counts = countItems(source, config.trainOn === 'train' ? 'validation' : 'test');
    const learner = new Learner({ device, config, shape, counts });
    const { initialWeights } = run.description;
    if (initialWeights) learner.start(initialWeights.path);
    const peakFlops = await measurePeak(device);
    const plan = planBatches(source, config);
    options.onStart?.({
      run: run.path,
      config,
      users: source.users,
      items: source.items,
      tokensPerEpoch: plan.tokens,
      totalSteps: plannedSteps(plan, config),
      ...learner.model.counts,
      peakFlops,
    });
    const validate = validation(learner, source, config);
    const trainer = new Trainer({
      run,
      source,
      learner,
      peakFlops,
      ...(validate && { validate }),
      ...(options.onEvent && { onEvent: options.onEvent }),
      ...(options.signal && { signal: options.signal }),
    });
    const { early, ...result } = await trainer.run();
    const done = result.reason !== 'interrupted';
    const { best } = early;
    if (done && best && best.step !== result.step) learner.takeEvaluated(run.checkpoints().require(best.step));
    const tested = done && source.lengths.some((length, user) => length > source.split.validationEnd[user]!);
    const report: TrainReport = {
      run: run.path,
      ...result,
      best,
      metric: config.evaluation.metric,
      digest: await learner.evaluated.digest(),
      seed: config.seed,
      threads: device.stats().threads,
      parameters: learner.model.counts,
      ...(tested && { test: await evaluateModel({ model: learner.evaluated, source, config, part: 'test' }) }),
    };
    writeFileAtomic(run.report, `${JSON.stringify(report, null, 2)}\n`);
    return report;
  } finally {
    device.dispose();
  }
}

/** The chosen metric on the validation events; nothing when there are none, or when they are trained on. */
function validation(
  learner: Learner,
  source: SequenceStore,
  config: ResolvedConfig,
): (() => Promise<number>) | undefined {
  const { trainEnd, validationEnd } = source.split;
  if (config.trainOn !== 'train' || !validationEnd.some((end, user) => end > trainEnd[user]!)) return undefined;
  const { exclude, targets, metric, users } = config.evaluation;
  const held = { source, part: 'validation', ...(users && { users }) } as const;
  if (metric === 'loglik') return () => logLikelihood({ ...held, model: learner.evaluated, loss: config.loss });
  const { normalizeItem } = config.loss;
  const which = { ...held, exclude, targets, normalizeItem };
  return async () => metricOf(await rankCases({ ...which, model: learner.evaluated }), metric);
}
