// A training run small enough to be started many times: its store, its flags, what it ended with.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { prepare } from '../../src/data/prepare/prepare.js';
import { synthesize } from '../../src/data/synth/synthesize.js';

/** The item table is just large enough to be divided. */
const SETTINGS = {
  'model.d': 32,
  'model.blocks': 1,
  'model.maxLength': 50,
  'batch.tokens': 128,
  'batch.lanes': 5,
  epochs: 1000,
  maxSteps: 120,
  'loss.kind': 'sampled-softmax',
  'loss.negatives.count': 32,
  'optimizer.table': 'lazy-adam',
  'evaluation.every': 1000,
  'optimizer.clip': 1,
  'checkpoint.every': 3,
  threads: 1,
};

export interface Result {
  digest: string;
  step: number;
}

export class SmallTraining {
  readonly folder = mkdtempSync(join(tmpdir(), 'turbogr-small-'));
  readonly store = join(this.folder, 'store');

  async prepare(): Promise<void> {
    const log = join(this.folder, 'log.csv');
    await synthesize({ out: log, users: 60, videos: 1200, meanLength: 40, margin: false });
    await prepare({ files: [log], out: this.store });
  }

  /** Every user has the same few items, one after the other. */
  async prepareItems(items: number): Promise<void> {
    const log = join(this.folder, 'log.csv');
    const events = Array.from({ length: 120 }, (_, i) => `${i % 6},${Math.floor(i / 6) % items},${1000 + i}\n`);
    writeFileSync(log, `user,item,time\n${events.join('')}`);
    await prepare({ files: [log], out: this.store });
  }

  /** Where a run of this name goes. */
  run(name: string): string {
    return join(this.folder, name);
  }

  /** `train` with its flags; settings of one's own win. */
  command(name: string, settings: Readonly<Record<string, string | number>> = {}): string[] {
    const all = Object.entries({ ...SETTINGS, ...settings }).flatMap(([key, value]) => ['--set', `${key}=${value}`]);
    return ['train', this.store, '--run', this.run(name), ...all];
  }

  result(name: string): Result {
    const { digest, step }: Result = JSON.parse(readFileSync(join(this.run(name), 'report.json'), 'utf8'));
    return { digest, step };
  }

  dispose(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
