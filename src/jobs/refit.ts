// Trains a finished run's model once more, for use: on the training and the validation events, from the start, with what the
// validation events chose there: the number of epochs and the weights of the priors. Its test stays held out.

import { resolveConfig } from '../config/resolve.js';
import type { ResolvedConfig } from '../config/schema.js';
import type { Ranks } from '../dist/launch/join-ranks.js';
import { chosenCheckpoint } from '../train/chosen-weights.js';
import { holdRun, placeOf, RunFolder } from '../train/run-folder.js';
import { UserError } from '../util/errors.js';
import { readFinalReport } from '../view/final-report.js';
import { openStore, requireBuilder } from './open-run.js';
import { readRunPriors } from './priors.js';
import { runTraining } from './run-training.js';
import { onAllRanks } from './train.js';
import type { ResumeOptions } from './train-options.js';
import type { TrainReport } from './train-report.js';

export interface RefitOptions extends ResumeOptions {
  /** Folder of the new run; default `<parent>-refit`. */
  run?: string;
}

/** Trains a new run from the choices of a finished one, or continues an existing refit of it. */
export async function refit(parent: string, options: RefitOptions = {}): Promise<TrainReport> {
  return await onAllRanks(options, (ranks, signal) => lead(ranks, parent, { ...options, signal }));
}

async function lead(ranks: Ranks, path: string, options: RefitOptions): Promise<TrainReport> {
  const parent = RunFolder.open(path);
  requireBuilder(parent, options.model);
  const config = refitConfig(parent);
  const source = openStore(parent, options.store);
  const { input: _input, shorter: _shorter, initialWeights, ...kept } = parent.description;
  const folder = options.run ?? `${path.replace(/\/+$/, '')}-refit`;
  using lock = await holdRun(folder);
  const run = RunFolder.create(
    folder,
    {
      ...kept,
      config,
      store: placeOf(folder, source.folder),
      ...(initialWeights && {
        initialWeights: { ...initialWeights, place: placeOf(folder, parent.find(initialWeights.place)) },
      }),
      parent: { place: placeOf(folder, path), identity: parent.identity, step: chosenCheckpoint(parent).step },
    },
    lock,
  );
  return await runTraining(run, source, { ...options, ranks });
}

/** The run's config, with what its validation chose instead of a validation. */
function refitConfig(parent: RunFolder): ResolvedConfig {
  const { path } = parent;
  const { maxSteps: _maxSteps, ...config } = parent.description.config;
  if (config.trainOn !== 'train') {
    const remedy = 'Refit a run with `trainOn: train`, whose validation events chose its epoch.';
    throw new UserError('nothing-to-refit', `${path} already trains on its validation events`, remedy);
  }
  const report = readFinalReport(parent.report);
  if (!report || report.reason === 'interrupted') {
    throw new UserError('unfinished', `${path} has not ended`, `Finish it first: npx turbogr resume ${path}`);
  }
  if (!report.best) {
    const remedy = 'Train with a split that has validation events.';
    throw new UserError('no-validation', `${path} has no validation that chose an epoch`, remedy);
  }
  return resolveConfig(config, {
    trainOn: 'train+validation',
    epochs: report.best.epoch + 1, // counted from 0
    priors: readRunPriors(parent) ?? 'off',
  });
}
