// The whole job of training: data, device, model, loop, and the test at the end with the weights that validation chose.

import { existsSync, rmSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { resolveConfig, resolveForLog, type UncheckedConfig } from '../config/resolve.js';
import type { Choice } from '../config/rules.js';
import type { ConfigInput, ResolvedConfig } from '../config/schema.js';
import { partBounds } from '../data/batch/windows.js';
import { logStatistics } from '../data/log-statistics.js';
import { SequenceStore } from '../data/store/sequence-store.js';
import { costOf } from '../dist/balance/cost.js';
import { gatherJson } from '../dist/comm/communicator.js';
import { agreeOn, type Fingerprints, type Ranks } from '../dist/launch/join-ranks.js';
import { onStopRequest, withRanks } from '../dist/launch/rank-life.js';
import { countItems } from '../eval/known-events.js';
import { logLikelihood } from '../eval/log-likelihood.js';
import { metricOf } from '../eval/metrics.js';
import { rankCases } from '../eval/rank-cases.js';
import type { EvaluationReport } from '../eval/report.js';
import type { RunEvent } from '../events/event.js';
import { findAddon } from '../native/addon.js';
import { Device } from '../native/device.js';
import type { ModelDefinition } from '../nn/definition.js';
import { chosenCheckpoint } from '../train/chosen-weights.js';
import { Learner } from '../train/learner.js';
import { holdRun, placeOf, type RunDescription, RunFolder } from '../train/run-folder.js';
import { planSteps, plannedSteps, windowsToTrain } from '../train/plan-steps.js';
import { Trainer, type TrainingResult } from '../train/trainer.js';
import { writeFileAtomic } from '../util/atomic-file.js';
import { UserError } from '../util/errors.js';
import { sha256File } from '../util/hash.js';
import { evaluateModel } from './evaluate.js';
import { measurePeak } from './measure-peak.js';
import { type DataOptions, findData, openData } from './open-data.js';
import { openStore, requireBuilder } from './open-run.js';
import { countUntrained, type PreparedSummary, readPreparedSummary } from './left-out.js';
import { fitRunPriors, type RunPriors } from './priors.js';
import { shapeModel } from './shape-model.js';
import { StepTrace } from './trace-steps.js';
import { judge, type Verdict } from './verdict.js';

/** Builds a model of one's own; `hasTime` says whether batches carry times. */
export type ModelBuilder = (config: ResolvedConfig, hasTime: boolean) => ModelDefinition;

export interface TrainOptions extends DataOptions {
  /** Several are merged, the later ones winning. */
  config?: ConfigInput | readonly ConfigInput[];
  /** Settings whose types nobody has checked, such as a file's and flags': they win over `config`, and are checked here. */
  settings?: readonly UncheckedConfig[];
  /** Folder of the run; by default `runs/<data>-<model>`. */
  run?: string;
  /** A model of one's own instead of the config's. */
  model?: ModelBuilder;
  /** Compare the store with its checksums while training begins, before the first checkpoint (default true). */
  verify?: boolean;
  /** Start from the weights of this safetensors file instead of random ones. */
  initialWeights?: string;
  /** False leaves the test events alone, as a search on validation does. */
  test?: boolean;
  /** Called once, before the first step. */
  onStart?: (start: TrainStart) => void;
  onEvent?: (event: RunEvent) => void;
  /** Write the first steps as a Chrome trace to this file. */
  trace?: string;
}

export type ResumeOptions = Pick<TrainOptions, 'model' | 'verify' | 'onStart' | 'onEvent' | 'signal' | 'trace'> & {
  /** Where the run's sequence store is now, when it was moved. */
  store?: string;
};

export interface TrainStart {
  run: string;
  config: ResolvedConfig;
  /** Settings that the rules chose from the log. */
  choices: readonly Choice[];
  /** Kind of the model: the config's, or the name that a model of one's own gives itself. */
  model: string;
  users: number;
  items: number;
  /** What preparing left out or guessed; undefined when the store has no report. */
  prepared: PreparedSummary | undefined;
  /** Training events that no batch ever holds, because histories are longer than the model's length. */
  untrainedEvents: number;
  trainingEvents: number;
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
  /** Events that chose the epoch; figures on `test` events that were chosen on them are no held-out figures. */
  chosenOn: 'validation' | 'test';
  /** The last validation was the best one, and training stopped for another reason than patience. */
  stillImproving: boolean;
  /** SHA-256 of the weights that were tested: the best validated ones, the last ones without validation. */
  digest: string;
  seed: number;
  threads: number;
  parameters: { blockParameters: number; denseParameters: number; tableParameters: number };
  /** How the log's priors were fitted; absent without them. */
  priors?: RunPriors;
  /** Absent when the run was interrupted or not to be tested, or when the split holds out no test events. */
  test?: EvaluationReport;
  /** What the result means; absent when the run was interrupted. */
  verdict?: Verdict;
}

/**
 * Trains a new run, or continues the one in the folder if it is the same; on all ranks that a launcher started. Rank 0
 * reads the log, holds the run's folder and reports; the others compute their lanes.
 */
export async function train(options: TrainOptions): Promise<TrainReport> {
  return await onAllRanks(options, (ranks, signal) => lead(ranks, { ...options, signal }));
}

/** Continues an interrupted run; one that had ended is only tested again. */
export async function resume(path: string, options: ResumeOptions = {}): Promise<TrainReport> {
  return await onAllRanks(options, (ranks, signal) => leadAgain(ranks, path, { ...options, signal }));
}

/** What followers need to know of the job. */
interface SharedJob {
  description: RunDescription;
  store: string;
}

async function onAllRanks(
  options: { signal?: AbortSignal; model?: ModelBuilder },
  leader: (ranks: Ranks, signal: AbortSignal) => Promise<TrainReport>,
): Promise<TrainReport> {
  return await withRanks(async ranks => {
    const stop = new AbortController();
    onStopRequest(ranks.world.rank, () => stop.abort());
    const signal = options.signal ? AbortSignal.any([options.signal, stop.signal]) : stop.signal;
    if (ranks.world.rank === 0) return await leader(ranks, signal);
    const [job] = await gatherJson<SharedJob | null>(ranks.world, null);
    const source = SequenceStore.open(job!.store);
    return await runJob(RunFolder.follow(job!.description), source, { ...options, signal, ranks });
  });
}

async function lead(ranks: Ranks, options: TrainOptions): Promise<TrainReport> {
  const given = [...[options.config ?? {}].flat(), ...(options.settings ?? [])];
  const preliminary = resolveConfig(...given); // what is wrong with it is said before the log is read
  const initial = options.initialWeights;
  if (initial !== undefined && !existsSync(initial)) {
    const remedy = 'Give a safetensors file that `turbogr export` wrote.';
    throw new UserError('no-weights', `${initial} does not exist`, remedy);
  }
  const found = await findData(options);
  const path = options.run ?? defaultRun(options, preliminary);
  using lock = await holdRun(path);
  const { source, input } = await openData(options, found, path);
  const { config, choices } = resolveForLog(logStatistics(source), ...given);
  const description = {
    config,
    model: options.model?.(config, source.hasTime).kind ?? config.model.kind,
    store: placeOf(path, source.folder),
    fingerprint: source.fingerprint,
    content: source.content,
    items: source.items,
    ...(input && { input }),
    ...(initial !== undefined && { initialWeights: { place: placeOf(path, initial), sha256: sha256File(initial) } }),
  };
  if (!RunFolder.exists(path)) requireTrainable(source, config, input && source.folder);
  const run = RunFolder.create(path, description, lock);
  return await runJob(run, source, { ...options, choices, ranks });
}

/** What makes training impossible is said before there is a run; `made` is the store that was prepared for it. */
function requireTrainable(source: SequenceStore, config: ResolvedConfig, made: string | undefined): void {
  try {
    windowsToTrain(source, config);
  } catch (error) {
    if (made !== undefined) rmSync(made, { recursive: true, force: true });
    throw error;
  }
}

async function leadAgain(ranks: Ranks, path: string, options: ResumeOptions): Promise<TrainReport> {
  requireBuilder(RunFolder.open(path), options.model);
  using lock = await holdRun(path);
  const run = RunFolder.open(path, lock);
  return await runJob(run, openStore(run, options.store), { ...options, ranks });
}

function defaultRun({ data, model }: TrainOptions, config: ResolvedConfig): string {
  const first = typeof data === 'string' ? data : data[0]!;
  const name = basename(first)
    .replace(/\..*$/, '')
    .replace(/[^\w-]+/g, '-');
  const kind = model ? model(config, false).kind : (config.recipe ?? config.model.kind);
  return join('runs', `${name}-${kind}`);
}

async function runJob(
  run: RunFolder,
  source: SequenceStore,
  options: ResumeOptions & { choices?: readonly Choice[]; test?: boolean; ranks: Ranks },
): Promise<TrainReport> {
  const { world } = options.ranks;
  const leads = world.rank === 0;
  const { config } = run.description;
  if (leads) {
    run.checkpoints().sweep();
    refuseIdleRanks(config, world.size);
    await gatherJson<SharedJob>(world, { description: run.description, store: resolve(source.folder) });
  }
  await agreeOn(world, fingerprintsOf(source));
  const stopVerifying = new AbortController();
  const verified = !leads || options.verify === false ? Promise.resolve() : source.verify(stopVerifying.signal);
  run.requireVerified(verified);
  const device = Device.open(config.threads === undefined ? {} : { threads: config.threads });
  try {
    const shape = shapeModel(config, source, options.model);
    const counts = countItems(source, config.trainOn === 'train' ? 'validation' : 'test');
    const learner = new Learner({ device, config, shape, counts, world });
    const peakFlops = leads ? await measurePeak(device) : 1;
    const plans = planSteps(
      source,
      config,
      costOf(length => shape.definition.flops(length)),
    );
    if (leads)
      options.onStart?.({
        run: run.path,
        config,
        choices: options.choices ?? [],
        model: run.description.model,
        users: source.users,
        items: source.items,
        prepared: readPreparedSummary(source.folder),
        ...countUntrained(source, config),
        tokensPerEpoch: plans.tokens,
        totalSteps: plannedSteps(plans, config),
        ...learner.model.counts,
        peakFlops,
      });
    const validate = validation(learner, source, config);
    const trace = !leads || options.trace === undefined ? undefined : new StepTrace(device, options.trace);
    const trainer = new Trainer({
      run,
      source,
      learner,
      plans,
      world,
      peakFlops,
      onFresh: () => loadInitialWeights(run, learner),
      ...(validate && { validate }),
      onEvent: event => {
        trace?.see(event);
        if (leads) options.onEvent?.(event);
      },
      ...(options.signal && { signal: options.signal }),
    });
    const { early, ...result } = await trainer.run();
    trace?.write();
    const done = result.reason !== 'interrupted';
    const { best } = early;
    if (leads && done && best && best.step !== result.step) learner.takeEvaluated(chosenCheckpoint(run));
    await verified;
    const { evaluated } = learner;
    const priors = leads && done ? await fitRunPriors({ run, model: evaluated, source, config }) : undefined;
    const weights = priors?.weights;
    const tested =
      leads &&
      done &&
      options.test !== false &&
      source.lengths.some((length, user) => length > source.split.validationEnd[user]!);
    const how = { model: evaluated, source, config, part: 'test', ...(weights && { priors: weights }) } as const;
    const test = tested ? await evaluateModel(how) : undefined;
    const stillImproving = result.reason !== 'patience' && best !== null && early.waited === 0;
    const report: TrainReport = {
      run: run.path,
      ...result,
      best,
      metric: config.evaluation.metric,
      chosenOn: config.evaluation.on,
      stillImproving,
      digest: await learner.evaluated.digest(),
      seed: config.seed,
      threads: device.stats().threads,
      parameters: learner.model.counts,
      ...(priors && { priors }),
      ...(test && { test }),
      ...(leads && done && options.test !== false && { verdict: judge({ run: run.path, test, stillImproving }) }),
    };
    if (leads) writeFileAtomic(run.report, `${JSON.stringify(report, null, 2)}\n`);
    return report;
  } catch (error) {
    await verified; // a damaged store is the cause of whatever else went wrong
    throw error;
  } finally {
    stopVerifying.abort();
    device.dispose();
  }
}

/** A rank without a lane would only wait. */
function refuseIdleRanks({ batch }: ResolvedConfig, ranks: number): void {
  if (batch.lanes >= ranks) return;
  throw new UserError(
    'few-lanes',
    `batch.lanes is ${batch.lanes}, and a step cannot be divided over ${ranks} ranks`,
    `Give --set batch.lanes=${ranks} or more: the result depends on lanes, never on ranks, so choose them for the largest number of ranks you mean to use.`,
  );
}

/** What all ranks must have in common. The config is rank 0's. */
function fingerprintsOf(source: SequenceStore): Fingerprints {
  return { store: source.fingerprint, code: sha256File(findAddon().path), node: process.version };
}

/** Exported weights to start from; they must be the ones that the run was begun with. */
function loadInitialWeights(run: RunFolder, learner: Learner): void {
  const { initialWeights } = run.description;
  if (!initialWeights) return;
  const file = run.find(initialWeights.place);
  if (!existsSync(file) || sha256File(file) !== initialWeights.sha256) {
    throw new UserError(
      'other-weights',
      `${file} ${existsSync(file) ? 'is no longer the file' : 'is gone, the file'} that ${run.path} was to start from`,
      'Put it back as it was, or train a new run: --run names it.',
    );
  }
  learner.start(file);
}

/** The chosen metric on the events that choose the epoch; nothing when there are none, or when they are trained on. */
function validation(
  learner: Learner,
  source: SequenceStore,
  config: ResolvedConfig,
): (() => Promise<number>) | undefined {
  const { exclude, targets, metric, users, on: part } = config.evaluation;
  const [starts, ends] = partBounds(source, part);
  if ((part === 'validation' && config.trainOn !== 'train') || !ends.some((end, user) => end > starts[user]!))
    return undefined;
  const held = { source, part, ...(users && { users }) } as const;
  if (metric === 'loglik') return () => logLikelihood({ ...held, model: learner.evaluated });
  const which = { ...held, exclude, targets };
  return async () => metricOf(await rankCases({ ...which, model: learner.evaluated }), metric);
}
