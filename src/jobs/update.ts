// Updates a trained run with newer events: a new run, named after its parent, whose store has the parent's events and the new
// ones. It starts from the parent's weights, with rows for new items, and trains on users with new events. Everything that
// determines it is in its run.json, so it is resumed like any other run.

import { existsSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { resolveConfig, type UncheckedConfig } from '../config/resolve.js';
import type { ResolvedConfig } from '../config/schema.js';
import { extendStore, type ExtendReport } from '../data/extend/extend-store.js';
import type { Progress } from '../data/prepare/options.js';
import { prepare } from '../data/prepare/prepare.js';
import { parseTime } from '../data/prepare/times.js';
import { SequenceStore } from '../data/store/sequence-store.js';
import { namedSplit, parseSplit, type SplitRule } from '../data/store/split.js';
import type { Ranks } from '../dist/launch/join-ranks.js';
import { Device } from '../native/device.js';
import { Model } from '../nn/model.js';
import { chosenCheckpoint, openChosenWeights } from '../train/chosen-weights.js';
import { holdRun, placeOf, RunFolder } from '../train/run-folder.js';
import { UserError } from '../util/errors.js';
import { sha256File } from '../util/hash.js';
import { extendWeights, type ExtendedWeights } from './extend-weights.js';
import { expandFiles, inputChanges, type PrepareChoices, recordInput } from './log-input.js';
import { openStore, requireBuilder } from './open-run.js';
import { newerChoices } from './newer-choices.js';
import { runTraining } from './run-training.js';
import { shapeModel } from './shape-model.js';
import { onAllRanks } from './train.js';
import type { ResumeOptions } from './train-options.js';
import type { TrainReport } from './train-report.js';

export interface UpdateOptions extends ResumeOptions {
  /** The parent run. */
  parent: string;
  /** Files of the newer log. Events that the run already has are skipped. */
  data: string | readonly string[];
  /** Folder of the new run; default `<parent>-update-<n>`. */
  run?: string;
  /** Columns and filters; default: those of the parent's log, without count filters. */
  prepare?: PrepareChoices;
  /** Settings that differ from the parent's config. */
  settings?: readonly UncheckedConfig[];
  onPrepare?: (progress: Progress) => void;
  /** Called after the newer events were read, before training; not when an update is resumed. */
  onExtended?: (report: ExtendReport & ExtendedWeights) => void;
}

/** Default number of epochs over the users with new events. */
const EPOCHS = 2;

/** Trains a new run from a parent and newer events, or continues an existing one. */
export async function update(options: UpdateOptions): Promise<TrainReport> {
  return await onAllRanks(options, (ranks, signal) => lead(ranks, { ...options, signal }));
}

async function lead(ranks: Ranks, options: UpdateOptions): Promise<TrainReport> {
  const parent = RunFolder.open(options.parent);
  requireBuilder(parent, options.model);
  const files = await expandFiles(typeof options.data === 'string' ? [options.data] : options.data);
  for (const file of files) {
    if (!existsSync(file)) throw new UserError('no-data', `${file} does not exist`, 'Give the files of the newer log.');
  }
  const base = openStore(parent, options.store);
  const log = { files, choices: newerChoices(parent, base, options.prepare) };
  const origin = { identity: parent.identity, step: chosenCheckpoint(parent).step };
  const path = options.run ?? (await freeFolder(options.parent, origin, log));
  using lock = await holdRun(path);
  if (!RunFolder.exists(path)) await beginOrLeaveNothing({ path, parent, base, origin, log, options });
  const run = RunFolder.open(path, lock);
  await requireSame(run, { parent: options.parent, origin, log });
  return await runTraining(run, openStore(run), { ...options, ranks });
}

type Origin = Pick<NonNullable<RunFolder['description']['parent']>, 'identity' | 'step'>;

interface NewerLog {
  files: readonly string[];
  choices: PrepareChoices;
}

interface Beginning {
  path: string;
  parent: RunFolder;
  base: SequenceStore;
  origin: Origin;
  log: NewerLog;
  options: UpdateOptions;
}

async function beginOrLeaveNothing(beginning: Beginning): Promise<void> {
  try {
    await begin(beginning);
  } catch (error) {
    for (const name of ['newer', 'store', 'start.safetensors']) {
      rmSync(join(beginning.path, name), { recursive: true, force: true });
    }
    throw error;
  }
}

/** Writes store, initial weights, and run.json last: a folder without it is started over. */
async function begin({ path, parent, base, origin, log, options }: Beginning): Promise<void> {
  const rule = splitRule(base, options.prepare?.split);
  const newer = join(path, 'newer');
  const { onPrepare, signal } = options;
  const { input } = await recordInput({ run: path, ...log }, () =>
    prepare(
      { ...log.choices, files: [...log.files], out: newer, force: true },
      { ...(onPrepare && { onProgress: onPrepare }), ...(signal && { signal }) },
    ),
  );
  const store = join(path, 'store');
  const extended = extendStore({ base, newer: SequenceStore.open(newer), out: store, rule });
  rmSync(newer, { recursive: true, force: true });
  const source = SequenceStore.open(store);
  const config = updatedConfig(parent.description.config, extended.firstTime, options.settings ?? []);
  const start = join(path, 'start.safetensors');
  const known = base.index.vocabulary.item.size;
  const started = startWeights({ parent, config, source, known, start, options });
  options.onExtended?.({ ...extended, ...started });
  RunFolder.create(path, {
    config,
    model: parent.description.model,
    store: placeOf(path, store),
    fingerprint: source.fingerprint,
    content: source.content,
    items: source.items,
    input,
    initialWeights: { place: placeOf(path, start), sha256: sha256File(start) },
    parent: { place: placeOf(path, parent.path), ...origin },
  });
}

function startWeights({
  parent,
  config,
  source,
  known,
  start,
  options,
}: {
  parent: RunFolder;
  config: ResolvedConfig;
  source: SequenceStore;
  known: number;
  start: string;
  options: UpdateOptions;
}): ExtendedWeights {
  using device = Device.open({ threads: 1 });
  const model = new Model(device, shapeModel(config, source, options.model), config.seed);
  const weights = openChosenWeights(parent);
  try {
    return extendWeights({ weights, model, source, known, out: start });
  } finally {
    weights.close();
  }
}

/** The parent's config, with a few epochs over users with new events. */
function updatedConfig(
  parent: ResolvedConfig,
  firstTime: number | undefined,
  settings: readonly UncheckedConfig[],
): ResolvedConfig {
  const { maxSteps: _maxSteps, trainSince: _trainSince, ...kept } = parent;
  return resolveConfig(
    kept,
    { epochs: EPOCHS, ...(firstTime !== undefined && { trainSince: firstTime }) },
    ...settings,
  );
}

function splitRule(base: SequenceStore, wanted: string | undefined): SplitRule {
  if (wanted !== undefined) return parseSplit(wanted, text => parseTime(text, base.index.time.kind));
  const rule = namedSplit(base.split.kind);
  if (rule.kind !== 'time') return rule;
  throw new UserError(
    'old-split',
    `the parent's split is ${base.split.kind}, after which all newer events would be held out`,
    'Choose a new split: --split time:<validation cut>,<test cut>, --split leave-one-out or --split none.',
  );
}

/** The first free number, or that of an existing update of this parent with this log, which is then continued. */
async function freeFolder(parent: string, origin: Origin, log: NewerLog): Promise<string> {
  const [, base = parent, number = '0'] = /^(.*?)(?:-update-(\d+))?\/*$/.exec(parent) ?? [];
  for (let n = Number(number) + 1; ; n++) {
    const path = `${base}-update-${n}`;
    if (!RunFolder.exists(path)) return path;
    const run = RunFolder.open(path);
    if ((await differences(run, origin, log)).length === 0) return path;
  }
}

/** Why the run is not this update; empty if it is. */
async function differences(run: RunFolder, origin: Origin, log: NewerLog): Promise<string[]> {
  const { parent, input } = run.description;
  if (!parent || !input) return ['it is not an update'];
  if (parent.identity !== origin.identity) return ['it has another parent'];
  if (parent.step !== origin.step) return [`its parent was at step ${parent.step}, and is now at ${origin.step}`];
  return await inputChanges(run, input, log);
}

async function requireSame(
  run: RunFolder,
  { parent, origin, log }: { parent: string; origin: Origin; log: NewerLog },
): Promise<void> {
  const found = await differences(run, origin, log);
  if (found.length === 0) return;
  throw new UserError(
    'run-exists',
    `${run.path} is not an update of ${relative('.', parent) || parent} on this log: ${found.join('; ')}`,
    `Choose another folder with --run, or continue that run: npx turbogr resume ${run.path}`,
  );
}
