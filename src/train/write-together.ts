// Writes a checkpoint's files on all ranks: each rank writes its own rows, rank 0 everything else.

import { resolve } from 'node:path';
import { type Communicator, gatherJson } from '../dist/comm/communicator.js';
import { type CheckpointFolder, writeCheckpointFiles } from './checkpoint.js';
import type { Learner } from './learner.js';

export interface WriteTogether {
  world: Communicator;
  /** Rank 0's. */
  checkpoints: CheckpointFolder;
  learner: Learner;
  step: number;
}

/** The checksums of all files, for rank 0 to seal. Collective. */
export async function writeTogether(options: WriteTogether): Promise<Record<string, string>> {
  const { world, checkpoints, learner, step } = options;
  const leads = world.rank === 0;
  const [folder] = await gatherJson(world, leads ? resolve(await checkpoints.begin(step)) : '');
  try {
    const own = await writeCheckpointFiles(folder!, await learner.files(), world.rank);
    return Object.assign({}, ...(await gatherJson(world, own)));
  } catch (error) {
    if (leads) checkpoints.abandon(step);
    throw error;
  }
}
