// The training job: rank 0 finds the data, resolves the config and locks the run's folder; then all ranks train.

import { existsSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { resolveConfig, resolveForLog } from '../config/resolve.js';
import type { ResolvedConfig } from '../config/schema.js';
import { logStatistics } from '../data/log-statistics.js';
import { SequenceStore } from '../data/store/sequence-store.js';
import { gatherJson } from '../dist/comm/communicator.js';
import type { Ranks } from '../dist/launch/join-ranks.js';
import { onStopRequest, withRanks } from '../dist/launch/rank-life.js';
import { windowsToTrain } from '../train/plan-steps.js';
import { holdRun, placeOf, RunFolder } from '../train/run-folder.js';
import { UserError } from '../util/errors.js';
import { sha256File } from '../util/hash.js';
import { chooseLoss } from './choose-loss.js';
import { findData, openData } from './open-data.js';
import { openStore, requireBuilder } from './open-run.js';
import { runTraining, type SharedJob } from './run-training.js';
import type { ModelBuilder, ResumeOptions, TrainOptions } from './train-options.js';
import type { TrainReport } from './train-report.js';

/**
 * Trains a new run, or continues the one in the folder if it is the same; on all ranks that a launcher started. Rank 0
 * reads the log, locks the run's folder and reports; the others compute their lanes.
 */
export async function train(options: TrainOptions): Promise<TrainReport> {
  return await onAllRanks(options, (ranks, signal) => lead(ranks, { ...options, signal }));
}

/** Continues an interrupted run; a finished one is only tested again. */
export async function resume(path: string, options: ResumeOptions = {}): Promise<TrainReport> {
  return await onAllRanks(options, (ranks, signal) => leadAgain(ranks, path, { ...options, signal }));
}

/** Runs `leader` on rank 0; the other ranks follow what it shares. */
export async function onAllRanks(
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
    return await runTraining(RunFolder.follow(job!.description), source, { ...options, signal, ranks });
  });
}

async function lead(ranks: Ranks, options: TrainOptions): Promise<TrainReport> {
  const given = [...[options.config ?? {}].flat(), ...(options.settings ?? [])];
  const preliminary = resolveConfig(...given); // reports errors before the log is read
  const initial = options.initialWeights;
  if (initial !== undefined && !existsSync(initial)) {
    const remedy = 'Give a safetensors file that `npx turbogr export` wrote.';
    throw new UserError('no-weights', `${initial} does not exist`, remedy);
  }
  const found = await findData(options);
  const path = options.run ?? defaultRun(options, preliminary);
  using lock = await holdRun(path);
  const { source, input } = await openData(options, found, path);
  const resolved = resolveForLog(logStatistics(source), ...given);
  const known = RunFolder.exists(path) ? RunFolder.open(path).description.config.loss.kind : undefined;
  const chosen = await chooseLoss(resolved.config, source.items, known);
  const { config } = chosen;
  const choices = [...resolved.choices, ...chosen.choices];
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
  return await runTraining(run, source, { ...options, choices, ranks });
}

/** Refuses untrainable data before the run is created; `made` is the store that was prepared for it. */
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
  return await runTraining(run, openStore(run, options.store), { ...options, ranks });
}

function defaultRun({ data, model }: TrainOptions, config: ResolvedConfig): string {
  const first = typeof data === 'string' ? data : data[0]!;
  const name = basename(first)
    .replace(/\..*$/, '')
    .replace(/[^\p{L}\p{N}_-]+/gu, '-')
    .replace(/^-+|-+$/g, '');
  const kind = model ? model(config, false).kind : (config.recipe ?? config.model.kind);
  return join('runs', `${name || 'log'}-${kind}`);
}
