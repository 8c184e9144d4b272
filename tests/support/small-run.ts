// A small trained run in a temporary folder, for tests of what comes after training.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ConfigInput, synthesize, train } from '../../src/index.js';

export const SMALL_CONFIG: ConfigInput = {
  model: { d: 16, blocks: 1, maxLength: 30 },
  batch: { tokens: 512 },
  epochs: 1,
  threads: 2,
};

export interface SmallRun extends Disposable {
  folder: string;
  log: string;
  run: string;
}

/** 120 users, 90 items, ids from 0 on. */
export async function smallRun(config: ConfigInput = SMALL_CONFIG): Promise<SmallRun> {
  const folder = mkdtempSync(join(tmpdir(), 'turbogr-small-'));
  const [log, run] = [join(folder, 'log.csv'), join(folder, 'run')];
  await synthesize({ out: log, users: 120, videos: 90, meanLength: 25, margin: false });
  await train({ data: log, config, run });
  return { folder, log, run, [Symbol.dispose]: () => rmSync(folder, { recursive: true }) };
}
