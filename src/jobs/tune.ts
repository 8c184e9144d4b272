// Successive halving: many candidates for a short while, the best third of them for three times as long, and so on.
// Only validation events are used, and no trial is tested. A trial is an ordinary run below the folder, so finished ones are
// found again: the same call resumes after an interruption.
//
// The budget in minutes is converted to FLOPs of the reference machine, so the same call runs the same trials everywhere; a
// clock only ends it early.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { z } from 'zod';
import { epochFlops, FLOPS_PER_MINUTE } from '../config/epoch-flops.js';
import type { LogStatistics } from '../config/log-statistics.js';
import { mergeConfigs, resolveForLog, type UncheckedConfig } from '../config/resolve.js';
import { drawCandidates } from '../config/search-space.js';
import { logStatistics } from '../data/log-statistics.js';
import { SequenceStore } from '../data/store/sequence-store.js';
import { writeFileAtomic } from '../util/atomic-file.js';
import { UserError } from '../util/errors.js';
import { hasValidation } from './evaluate.js';
import { train } from './train.js';

/** Successive halving: one in this many candidates of a rung is promoted, with this many times the budget. */
const FACTOR = 3;
const RUNGS = 3;

export interface TuneOptions {
  store: string;
  /** Folder for trials, leaderboard and winner. */
  folder: string;
  /** Minutes on the reference machine; the search ends after twice that in real time. */
  minutes: number;
  /** Keys that every candidate has. */
  config?: readonly UncheckedConfig[];
  seed?: number;
  onTrial?: (trial: Trial, leaderboard: readonly Trial[]) => void;
  signal?: AbortSignal;
}

const TRIAL = z.strictObject({
  rung: z.int(),
  candidate: z.int(),
  settings: z.record(z.string(), z.unknown()),
  /** Maximum epochs, epochs used, and the best one. */
  epochs: z.int(),
  trained: z.int(),
  best: z.int(),
  metric: z.string(),
  /** On validation, priors included. */
  value: z.number(),
  seconds: z.number(),
});
export type Trial = z.infer<typeof TRIAL>;

export interface TuneReport {
  /** Best first: a later rung before an earlier one, then by value. */
  leaderboard: Trial[];
  /** A config file with the winner's settings. */
  winner: string;
  /** Whether rungs are missing. */
  stopped: boolean;
}

export async function tune(options: TuneOptions): Promise<TuneReport> {
  const { store, minutes, config = [], seed = 1 } = options;
  const source = SequenceStore.open(store);
  if (!hasValidation(source)) {
    const remedy = 'Prepare it with a split that holds out validation events, such as leave-one-out.';
    throw new UserError('no-validation', `${store} has no validation events to choose by`, remedy);
  }
  const log = logStatistics(source);
  const started = performance.now();
  const late = () => (options.signal?.aborted ?? false) || performance.now() - started > 2 * minutes * 60_000;
  const candidates = drawCandidates(FACTOR ** (RUNGS - 1), seed);
  const trials: Trial[] = [];
  let going = candidates.map((_, candidate) => candidate);
  for (let rung = 0; rung < RUNGS; rung++) {
    const share = (minutes * FLOPS_PER_MINUTE) / RUNGS / going.length;
    for (const candidate of going) {
      if (late()) return finish(options, trials, true);
      const given = [...config, candidates[candidate]!];
      const epochs = affordableEpochs(log, given, share);
      const trial = await runTrial(options, { rung, candidate, epochs, given });
      if (!trial) return finish(options, trials, true);
      trials.push(trial);
      options.onTrial?.(trial, ordered(trials));
    }
    const best = ordered(trials).filter(trial => trial.rung === rung);
    going = best.slice(0, Math.ceil(going.length / FACTOR)).map(({ candidate }) => candidate);
  }
  return finish(options, trials, false);
}

function affordableEpochs(log: LogStatistics, given: readonly UncheckedConfig[], flops: number): number {
  const { config } = resolveForLog(log, ...given);
  return Math.max(1, Math.min(config.epochs, Math.floor(flops / epochFlops(log, config))));
}

interface Plan {
  rung: number;
  candidate: number;
  epochs: number;
  given: readonly UncheckedConfig[];
}

/** Undefined if interrupted. */
async function runTrial(options: TuneOptions, { rung, candidate, epochs, given }: Plan): Promise<Trial | undefined> {
  const run = join(options.folder, 'trials', `rung-${rung}-candidate-${candidate}`);
  const file = join(run, 'trial.json');
  if (existsSync(file)) {
    const known = TRIAL.safeParse(JSON.parse(readFileSync(file, 'utf8')));
    if (known.success && known.data.epochs === epochs) return known.data;
    throw new UserError(
      'other-search',
      `${options.folder} holds a search with another budget, seed or data`,
      'Choose another folder with --out, or remove this one.',
    );
  }
  const config = [...given, { epochs, checkpoint: { keep: 1 } }];
  const { signal, store: data } = options;
  const report = await train({ data, config, run, test: false, ...(signal && { signal }) });
  if (report.reason === 'interrupted' || !report.best) return undefined;
  const { best, metric, seconds, priors } = report;
  const trial: Trial = {
    rung,
    candidate,
    settings: mergeConfigs(...given),
    epochs,
    trained: report.epoch,
    best: best.epoch + 1,
    metric,
    value: Math.max(best.value, priors?.together ?? 0),
    seconds,
  };
  writeFileAtomic(file, `${JSON.stringify(trial, null, 2)}\n`);
  return trial;
}

function ordered(trials: readonly Trial[]): Trial[] {
  return trials.toSorted((a, b) => b.rung - a.rung || b.value - a.value || a.candidate - b.candidate);
}

function finish({ folder }: TuneOptions, trials: readonly Trial[], stopped: boolean): TuneReport {
  const leaderboard = ordered(trials);
  const winner = join(folder, 'best.yaml');
  const [best] = leaderboard;
  if (best) {
    writeFileAtomic(winner, stringify(best.settings));
    writeFileAtomic(join(folder, 'leaderboard.json'), `${JSON.stringify({ stopped, leaderboard }, null, 2)}\n`);
  }
  return { leaderboard, winner, stopped };
}
