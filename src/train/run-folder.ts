// What a run leaves behind, and where: `run.json` (resolved config, data), `events.jsonl`, `checkpoints/`, `report.json`.
// A run is known by its identity, a hash of all that decides its result; threads do not, so they are left out.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { resolveConfig } from '../config/resolve.js';
import type { ResolvedConfig } from '../config/schema.js';
import { makeFolder, writeFileAtomic } from '../util/atomic-file.js';
import { UserError } from '../util/errors.js';
import { canonicalJson, sha256 } from '../util/hash.js';
import { CheckpointFolder } from './checkpoint.js';

/** What decides a run, beside the code. */
export interface RunDescription {
  config: ResolvedConfig;
  /** Folder of the sequence store. */
  store: string;
  /** The split's fingerprint at the start: another one means other data. */
  fingerprint: string;
  items: number;
  /** Weights to start from; random ones when absent. */
  initialWeights?: { path: string; sha256: string } | undefined;
}

/** `run.json`; the config is checked as any other. */
const RUN_FILE = z.strictObject({
  format: z.literal('turbogr-run'),
  config: z.record(z.string(), z.unknown()),
  store: z.string(),
  fingerprint: z.string(),
  items: z.int(),
  initialWeights: z.strictObject({ path: z.string(), sha256: z.string() }).optional(),
});

export function runIdentity({ config, fingerprint, items, initialWeights }: RunDescription): string {
  const { threads: _never, ...decisive } = config;
  return sha256(canonicalJson({ config: decisive, fingerprint, items, initial: initialWeights?.sha256 }));
}

export class RunFolder {
  readonly path: string;
  readonly description: RunDescription;

  private constructor(path: string, description: RunDescription) {
    this.path = path;
    this.description = description;
  }

  /** A new run. A folder that already holds one is refused, unless it is the same run, which is then continued. */
  static create(path: string, description: RunDescription): RunFolder {
    if (existsSync(join(path, 'run.json'))) {
      const known = RunFolder.open(path);
      if (runIdentity(known.description) === runIdentity(description)) return known;
      throw new UserError(
        'run-exists',
        `${path} holds a run with another config or other data`,
        'Choose another name with --run, or remove the folder.',
      );
    }
    makeFolder(path);
    writeFileAtomic(join(path, 'run.json'), JSON.stringify({ format: 'turbogr-run', ...description }, null, 2));
    return new RunFolder(path, description);
  }

  static open(path: string): RunFolder {
    const file = join(path, 'run.json');
    if (!existsSync(file)) {
      throw new UserError(
        'not-a-run',
        `${path} holds no run (no run.json)`,
        'Give the folder that `turbogr train` named.',
      );
    }
    const found = RUN_FILE.safeParse(JSON.parse(readFileSync(file, 'utf8')));
    if (!found.success) {
      throw new UserError('not-a-run', `${file}: ${found.error.message}`, 'Give a folder that `turbogr train` made.');
    }
    const { format: _known, config, ...description } = found.data;
    return new RunFolder(path, { ...description, config: resolveConfig(config) });
  }

  get events(): string {
    return join(this.path, 'events.jsonl');
  }

  get report(): string {
    return join(this.path, 'report.json');
  }

  checkpoints(): CheckpointFolder {
    return new CheckpointFolder(join(this.path, 'checkpoints'), runIdentity(this.description));
  }
}
