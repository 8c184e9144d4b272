// Which weights are a run's result, decided only here: those of the checkpoint that the newest valid checkpoint names as
// best on validation (itself without validation), and there the moving average if the run keeps one.

import { basename } from 'node:path';
import type { ResolvedConfig } from '../config/schema.js';
import { UserError } from '../util/errors.js';
import { errorCode } from '../util/process-identity.js';
import type { TensorFile } from '../util/tensor-file.js';
import type { Checkpoint, RefusedCheckpoint } from './checkpoint.js';
import type { RunFolder } from './run-folder.js';

/** The file of a checkpoint that holds the weights to evaluate with. */
export function evaluatedFile(config: ResolvedConfig): string {
  return config.optimizer.ema === undefined ? 'weights' : 'average';
}

const UNSOUND = new Set(['no-checkpoint', 'damaged-checkpoint']);
/** While a run trains, a checkpoint may be pruned between being found and being opened. */
const ATTEMPTS = 10;

/**
 * Opens the chosen weights, also while the run is training; the caller closes the file. If the newest checkpoint is damaged
 * this does not fall back to older weights: they would be another model under the same name.
 */
export function openChosenWeights(run: RunFolder): TensorFile {
  for (let attempt = 1; ; attempt++) {
    try {
      const { checkpoint, refused } = findChosen(run);
      if (refused[0]) throw newestRefused(run, checkpoint, refused[0]);
      return checkpoint.open(evaluatedFile(run.description.config));
    } catch (error) {
      const pruned = errorCode(error) === 'ENOENT' || (error instanceof UserError && UNSOUND.has(error.code));
      if (!pruned || attempt === ATTEMPTS || run.checkpoints().steps().length === 0) throw error;
    }
  }
}

/** For the trainer, which has already reported skipped checkpoints. */
export function chosenCheckpoint(run: RunFolder): Checkpoint {
  return findChosen(run).checkpoint;
}

/** The chosen checkpoint, and the refused ones that are newer. */
function findChosen(run: RunFolder): { checkpoint: Checkpoint; refused: RefusedCheckpoint[] } {
  const folder = run.checkpoints();
  const { checkpoint, refused } = folder.latest();
  if (!checkpoint) {
    const reasons = refused.map(({ path, reason }) => ` ${path}: ${reason}.`).join('');
    const message = `${run.path} has no sound checkpoint yet.${reasons}`;
    throw new UserError('no-checkpoint', message, `Train it: npx turbogr resume ${run.path}`);
  }
  const best = checkpoint.best === null ? checkpoint : folder.load(checkpoint.best);
  if ('state' in best) return { checkpoint: best, refused };
  throw new UserError('no-checkpoint', `${best.path} is refused: ${best.reason}`, 'Train the run again.');
}

function newestRefused(run: RunFolder, older: Checkpoint, { path, reason }: RefusedCheckpoint): UserError {
  return new UserError(
    'damaged-checkpoint',
    `${path} is refused: ${reason}`,
    `Remove that folder, to use ${basename(older.path)} instead. Or, if the run reaches that step, train it again: npx turbogr resume ${run.path}`,
  );
}
