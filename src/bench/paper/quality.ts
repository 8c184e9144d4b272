// Test figures of an HSTU of one of the paper's sizes, trained with given settings on a generated log. The log is always the
// same, so runs differ only in their settings.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mergeConfigs } from '../../config/resolve.js';
import type { ConfigInput } from '../../config/schema.js';
import { prepare } from '../../data/prepare/prepare.js';
import { synthesize } from '../../data/synth/synthesize.js';
import { train } from '../../jobs/train.js';
import type { SectionOptions } from './row.js';

export const LOG_TEXT =
  'a synthetic log made by this command (3,000 users, 60 events each, 4,000 videos; quick: 400 users and 4 epochs), one seed: differences between rows compare, figures do not';

const CUTOFFS = [10, 100, 200, 1000, 2000];

/** By metric, such as `hr@10`: value and the half width of its 95 % interval. */
export type Quality = Readonly<Record<string, { value: number; margin: number }>>;

/** `size`: one of the paper's. The epoch is chosen on validation. */
export async function trainedQuality(
  size: 'tiny' | 'small' | 'medium',
  settings: ConfigInput,
  { quick, threads }: SectionOptions,
): Promise<Quality> {
  const folder = mkdtempSync(join(tmpdir(), 'turbogr-bench-paper-'));
  try {
    const [log, store] = [join(folder, 'log.csv'), join(folder, 'store')];
    await synthesize({ out: log, users: quick ? 400 : 3000, meanLength: 60, videos: 4000, seed: 1, margin: false });
    await prepare({ files: [log], out: store });
    const base: ConfigInput = {
      recipe: 'plain',
      model: { kind: 'hstu', size, maxLength: 64 },
      optimizer: { lr: 2e-3 },
      batch: { tokens: quick ? 2048 : 8192 },
      epochs: quick ? 4 : 30,
      evaluation: { cutoffs: CUTOFFS, patience: 4 },
      checkpoint: { keep: 1 },
      ...(threads !== undefined && { threads }),
    };
    const { test } = await train({ data: store, config: mergeConfigs(base, settings), run: join(folder, 'run') });
    return test!.metrics['model']!;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** .0633 */
export function score(value: number): string {
  return value.toFixed(4).replace(/^0/, '');
}
