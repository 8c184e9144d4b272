// `ranks.safetensors` of a run: the rank of every test case, so that runs can be compared user by user without their models.
// Cases are in evaluation order; users and targets are dense ids of the store.

import { renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { z } from 'zod';
import { syncFolder, claimTemporary } from '../util/atomic-file.js';
import { UserError } from '../util/errors.js';
import { SafetensorsFile, writeSafetensors } from '../util/safetensors.js';
import type { RankedCases } from './metrics.js';

const HEAD = z.strictObject({
  format: z.literal('turbogr-ranks'),
  /** SHA-256 of the weights that ranked. */
  digest: z.string(),
  /** SHA-256 of the split. */
  fingerprint: z.string(),
  exclude: z.enum(['history', 'input', 'none']),
  /** Held-out events of a user. */
  targets: z.coerce.number().int(),
  items: z.coerce.number().int(),
});

/** The ranks, and the properties that must match for a comparison. */
export interface SavedRanks extends RankedCases {
  digest: string;
  fingerprint: string;
  exclude: 'history' | 'input' | 'none';
  targets: number;
}

export function writeRanks(file: string, { users, ranks, ...head }: SavedRanks): void {
  const temp = claimTemporary(file);
  const column = (data: Int32Array) => ({ dtype: 'I32', shape: [data.length], data }) as const;
  const metadata = Object.fromEntries(Object.entries(head).map(([key, value]) => [key, String(value)]));
  try {
    writeSafetensors(temp, { user: column(users), rank: column(ranks) }, { format: 'turbogr-ranks', ...metadata });
    renameSync(temp, file);
  } catch (error) {
    rmSync(temp, { force: true });
    throw error;
  }
  syncFolder(dirname(file));
}

export function readRanks(path: string): SavedRanks {
  const file = new SafetensorsFile(path);
  try {
    const head = HEAD.safeParse(file.metadata);
    if (!head.success) {
      const remedy = 'Remove the file: the ranks are then recomputed.';
      throw new UserError('bad-ranks', `${path}: ${head.error.issues[0]!.message}`, remedy);
    }
    const { format: _format, ...rest } = head.data;
    return { ...rest, users: file.read('user', 'I32'), ranks: file.read('rank', 'I32') };
  } finally {
    file.close();
  }
}
