// A scaling-law experiment: models of several widths on nested shares of one synthetic log. Each cell is an ordinary run per
// seed, in a folder that shows whether it is finished. All cells are evaluated on the same held-out users, at their best
// epoch. The same options give the same log, runs and figures, with any number of threads.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { ConfigInput } from '../config/schema.js';
import { prepare } from '../data/prepare/prepare.js';
import { SequenceStore } from '../data/store/sequence-store.js';
import { synthesize } from '../data/synth/synthesize.js';
import type { RunEvent } from '../events/event.js';
import { readEvents } from '../train/event-log.js';
import { UserError } from '../util/errors.js';
import { fitScalingLaw, type ScalingLaw, type ScalingPoint } from './scaling-law.js';
import { train } from '../jobs/train.js';

export interface ScalingOptions {
  /** Folder of log, store and runs; finished ones are kept. */
  folder: string;
  /** Model widths D; depth is the same for all. */
  widths: readonly number[];
  /** Training users of each share. Another tenth of the whole log's users are held out. */
  users: readonly number[];
  /** Maximum histories that a run reads, repeated ones included: about equal steps for all cells; early stopping usually ends sooner. */
  visits: number;
  videos: number;
  meanLength: number;
  /** Seed of the log and of a cell's first run. */
  seed: number;
  /** Runs per cell, with consecutive seeds; its loss is their mean. */
  seeds: number;
  threads?: number | undefined;
  onEvent?: (event: RunEvent, cell: string) => void;
  onCell?: (cell: ScalingCell) => void;
  signal?: AbortSignal;
}

/** Its loss is the mean of its runs. */
export interface ScalingCell extends ScalingPoint {
  width: number;
  users: number;
  runs: ScalingRun[];
}

export interface ScalingRun {
  seed: number;
  loss: number;
  /** The chosen epoch, counted from 1, and the number of epochs. */
  epoch: number;
  epochs: number;
  seconds: number;
  digest: string;
}

export interface ScalingReport {
  /** Held-out next-event loss: cross-entropy over the whole catalogue, in nats. */
  loss: string;
  heldOutEvents: number;
  videos: number;
  seed: number;
  fingerprint: string;
  cells: ScalingCell[];
  law: ScalingLaw;
}

/** Share of users held out to choose the epoch; as many more are reserved for tests, which this experiment does not run. */
const HELD_OUT = 0.1;

interface CellRun {
  width: number;
  /** Training users. */
  share: number;
  seed: number;
}

/** Users between two validations; small shares are read several times in between. */
const VALIDATE_EVERY = 500;

/** A run depends only on its cell's size and its seed, so a grid can be extended without retraining. */
function runConfig({ visits, threads }: ScalingOptions, { width, share, seed }: CellRun): ConfigInput {
  return {
    recipe: 'plain',
    model: { kind: 'hstu', d: width, blocks: 2, heads: 1, maxLength: 100, dropout: 0.5 },
    loss: { kind: 'full-softmax', temperature: 1, normalizeUser: false, normalizeItem: false },
    optimizer: { lr: 5e-3, weightDecay: 0.1, ema: 0.98 },
    batch: { tokens: 2048 },
    trainUsers: share,
    epochs: Math.ceil(visits / share),
    evaluation: { metric: 'loglik', every: Math.max(1, Math.round(VALIDATE_EVERY / share)), patience: 10 },
    checkpoint: { keep: 1 },
    seed,
    ...(threads && { threads }),
  };
}

/** Runs missing cells; undefined when aborted, after which the same call resumes. */
export async function runScaling(options: ScalingOptions): Promise<ScalingReport | undefined> {
  const { folder, widths, users, videos, seed } = options;
  const store = join(folder, 'store');
  const prepared = await makeStore(options, store);
  const cells: ScalingCell[] = [];
  for (const share of users) {
    for (const width of widths) {
      const runs: FinishedRun[] = [];
      for (let k = 0; k < options.seeds; k++) {
        const of = { width, share, seed: seed + k };
        const run = join(folder, `width-${width}-users-${share}-seed-${of.seed}`);
        if (!isFinished(run)) await trainRun(options, of, { run, store });
        if (!isFinished(run)) return undefined;
        runs.push(readRun(run, of.seed));
      }
      const cell = cellOf(runs, width, share);
      cells.push(cell);
      options.onCell?.(cell);
    }
  }
  return {
    loss: 'cross-entropy of the next event over the whole catalogue, nats, of users that no cell trains on',
    heldOutEvents: prepared.validation,
    videos,
    seed,
    fingerprint: prepared.fingerprint,
    cells,
    law: fitScalingLaw(cells),
  };
}

interface Prepared {
  validation: number;
  fingerprint: string;
}

/** The fingerprint is in the report, so that a store of another log in this folder does not go unnoticed. */
async function makeStore(options: ScalingOptions, store: string): Promise<Prepared> {
  const { folder, users, videos, meanLength, seed, signal } = options;
  if (!existsSync(join(store, 'index.json'))) {
    const log = join(folder, 'log.csv');
    const all = Math.ceil(Math.max(...users) / (1 - 2 * HELD_OUT) / 0.95); // the number of held-out users varies slightly
    await synthesize({ out: log, users: all, videos, meanLength, seed, margin: false, ...(signal && { signal }) });
    await prepare({ files: [log], out: store, split: `user:${HELD_OUT}`, force: true }, { ...(signal && { signal }) });
  }
  const { split, fingerprint, lengths } = SequenceStore.open(store);
  const trained = split.trainEnd.filter(end => end > 1).length;
  if (trained < Math.max(...users)) {
    throw new UserError(
      'too-few-users',
      `${store} has ${trained} users to train on, fewer than ${Math.max(...users)}`,
      'Choose another --folder: this one holds a smaller log.',
    );
  }
  const validation = lengths.reduce((sum, _, user) => sum + (split.validationEnd[user]! - split.trainEnd[user]!), 0);
  return { validation, fingerprint };
}

async function trainRun(options: ScalingOptions, of: CellRun, at: { run: string; store: string }): Promise<void> {
  const { onEvent, signal } = options;
  const cell = `width ${of.width}, ${of.share} users, seed ${of.seed}`;
  await train({
    data: at.store,
    config: runConfig(options, of),
    run: at.run,
    ...(onEvent && { onEvent: (event: RunEvent) => onEvent(event, cell) }),
    ...(signal && { signal }),
  });
}

/** The part of `report.json` that is read. */
const REPORT = z.object({
  reason: z.enum(['epochs', 'steps', 'patience', 'interrupted']),
  epoch: z.int(),
  seconds: z.number(),
  digest: z.string(),
  /** Null in a run that was interrupted before its first validation. */
  best: z.object({ value: z.number(), epoch: z.int() }).nullable(),
});

function readReport(run: string): z.infer<typeof REPORT> {
  const path = join(run, 'report.json');
  try {
    return REPORT.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch (cause) {
    const remedy = `Remove it; the run is then tested again: npx turbogr resume ${run}`;
    throw new UserError('damaged-report', `${path} is not a run report`, remedy, { cause });
  }
}

function isFinished(run: string): boolean {
  return existsSync(join(run, 'report.json')) && readReport(run).reason !== 'interrupted';
}

interface FinishedRun {
  size: { parameters: number; events: number };
  run: ScalingRun;
}

function readRun(run: string, seed: number): FinishedRun {
  const { best, epoch: epochs, seconds, digest } = readReport(run);
  const { model, data } = readEvents(join(run, 'events.jsonl')).find(event => event.kind === 'run')!;
  return {
    size: { parameters: model.denseParameters + model.tableParameters, events: data.trainTokens },
    run: { seed, loss: -best!.value, epoch: best!.epoch + 1, epochs, seconds, digest },
  };
}

function cellOf(finished: readonly FinishedRun[], width: number, users: number): ScalingCell {
  const runs = finished.map(({ run }) => run);
  return {
    width,
    users,
    ...finished[0]!.size,
    loss: runs.reduce((sum, { loss }) => sum + loss, 0) / runs.length,
    runs,
  };
}
