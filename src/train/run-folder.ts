// What a run leaves behind, and where: `run.json` (resolved config, data), `events.jsonl`, `checkpoints/`, `report.json`,
// `priors.json` (weights of the log's priors), `ranks.safetensors` (rank of every test case).
// A run is identified by a hash of everything that determines its result. `run.json` carries a checksum: a run that was
// edited by hand is refused, because its checkpoints and figures would no longer be those of its config.

import { existsSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { isAbsolute, join, relative, resolve, sep } from 'node:path';
import { z } from 'zod';
import { resolveConfig } from '../config/resolve.js';
import type { ResolvedConfig } from '../config/schema.js';
import { writeFileAtomic } from '../util/atomic-file.js';
import { UserError } from '../util/errors.js';
import { type FolderLock, lockFolder } from '../util/folder-lock.js';
import { canonicalJson, sha256 } from '../util/hash.js';
import { readTextFile } from '../util/regular-file.js';
import { CheckpointFolder } from './checkpoint.js';
import { configDifferences } from './config-differences.js';
import { longerRun } from './extend-run.js';

/** A path outside the run: the relative one survives moving the whole tree, the absolute one moving the run alone. */
const PLACE = z.strictObject({ relative: z.string(), absolute: z.string() });
export type Place = z.infer<typeof PLACE>;

/** A log file as it was when it was prepared. */
const INPUT_FILE = z.strictObject({ place: PLACE, bytes: z.int(), modified: z.number(), sha256: z.string() });
const LOG_INPUT = z.strictObject({
  files: z.array(INPUT_FILE),
  /** Options of `prepare` that were given and affect the result. */
  options: z.record(z.string(), z.unknown()),
  /** Columns by role, given or guessed. */
  columns: z.record(z.string(), z.string()),
});
/** What a run's store was prepared from. */
export type LogInput = z.infer<typeof LOG_INPUT>;

const RUN_FILE = z.strictObject({
  format: z.literal('turbogr-run'),
  version: z.literal(2, 'this program does not support its version'),
  /** Resolved; validated like any other config. */
  config: z.record(z.string(), z.unknown()),
  /** Kind of the model: one of the config's, or the name that a custom model gives itself. */
  model: z.string(),
  /** The sequence store. */
  store: PLACE,
  /** The split's fingerprint at the start; a different one means different data. */
  fingerprint: z.string(),
  /** Hash of everything that a model can see of the store, including actions and features. */
  content: z.string(),
  items: z.int(),
  /** The log that the store was prepared from, when the run did it. */
  input: LOG_INPUT.optional(),
  /** Weights to start from; random ones when absent. */
  initialWeights: z.strictObject({ place: PLACE, sha256: z.string() }).optional(),
  /** The run that this one updates or refits, and the step of its chosen weights. */
  parent: z.strictObject({ place: PLACE, identity: z.string(), step: z.int() }).optional(),
  /** Identities of this run when it had fewer epochs; their checkpoints belong to it. */
  shorter: z.array(z.string()).optional(),
  /** SHA-256 of all of the above. */
  checksum: z.string(),
});
type RunFile = z.infer<typeof RUN_FILE>;

/** What determines a run's result, apart from the code. */
export type RunDescription = Omit<RunFile, 'format' | 'version' | 'checksum' | 'config'> & { config: ResolvedConfig };

/** Config keys that never affect the result: not part of a run's identity, and free to change between resumes. */
export const FREE_KEYS = [
  'threads',
  'overlap',
  'pipeline',
  'checkReplicas',
  'mapTables',
  'groupSize',
  'checkpoint',
] as const;

function identityOf(description: Omit<RunDescription, 'config'> & { config: object }): string {
  const { model, fingerprint, content, items, initialWeights } = description;
  const free: readonly string[] = FREE_KEYS;
  const config = Object.fromEntries(Object.entries(description.config).filter(([key]) => !free.includes(key)));
  return sha256(canonicalJson({ config, model, fingerprint, content, items, initial: initialWeights?.sha256 }));
}

/** How to find `path` again from the run's folder. */
export function placeOf(run: string, path: string): Place {
  const absolute = resolve(path);
  return { relative: relative(resolve(run), absolute).split(sep).join('/'), absolute };
}

/** Temporary names of atomically written files; see `writeFileAtomic`. */
const TEMP_FILE = /^\.[\w-]+\.(jsonl?|safetensors|html|md)\.\d+\.tmp$/;

/** Makes this process the only writer in the folder, and removes partial files of a killed one. */
export async function holdRun(path: string): Promise<FolderLock> {
  const lock = await lockFolder(path);
  for (const name of readdirSync(path)) if (TEMP_FILE.test(name)) rmSync(join(path, name), { force: true });
  return {
    assertHeld: () => lock.assertHeld(),
    [Symbol.dispose]: () => {
      lock[Symbol.dispose]();
      try {
        rmdirSync(path); // succeeds only if it is empty: no run was written
      } catch {
        // It holds a run.
      }
    },
  };
}

interface Held {
  lock?: FolderLock | undefined;
  identity?: string;
}

export class RunFolder {
  readonly path: string;
  readonly description: RunDescription;
  /** A hash of everything that determines the result, as written: config keys added since do not change it. */
  readonly identity: string;
  readonly #lock: FolderLock | undefined;
  #verified: Promise<void> = Promise.resolve();

  private constructor(path: string, description: RunDescription, { lock, identity }: Held = {}) {
    this.path = path;
    this.description = description;
    this.identity = identity ?? identityOf(description);
    this.#lock = lock;
  }

  static exists(path: string): boolean {
    return existsSync(join(path, 'run.json'));
  }

  /**
   * A new run. A folder that already holds one is refused, unless it is the same run, which is then continued, or one that
   * ended before its first checkpoint, so that nothing is lost.
   */
  static create(path: string, description: RunDescription, lock?: FolderLock): RunFolder {
    if (RunFolder.exists(path)) {
      const known = RunFolder.open(path, lock);
      if (known.checkpoints().steps().length > 0) return known.#continueAs(description);
    }
    writeRunFile(path, description);
    return new RunFolder(path, description, { lock });
  }

  /** With a `lock` for writing, without one for reading. */
  static open(path: string, lock?: FolderLock): RunFolder {
    const { format: _format, version: _version, checksum: _checksum, config, ...rest } = readRunFile(path);
    const identity = identityOf({ ...rest, config });
    return new RunFolder(path, { ...rest, config: resolveConfig(config) }, { lock, identity });
  }

  /** Rank 0's run, as another rank sees it: the description only; nothing on disk is touched. */
  static follow(description: RunDescription): RunFolder {
    return new RunFolder('', description);
  }

  #continueAs(wanted: RunDescription): RunFolder {
    const known = this.description;
    const sameLength = { ...wanted, config: { ...wanted.config, epochs: known.config.epochs } };
    const same = identityOf(known) === identityOf(sameLength);
    const longer = same && longerRun(this.path, known.config, wanted.config);
    if (longer) {
      const extended = { ...known, config: longer, shorter: [...(known.shorter ?? []), this.identity] };
      writeRunFile(this.path, extended);
      return new RunFolder(this.path, extended, { lock: this.#lock }).#continueAs(wanted);
    }
    if (identityOf(known) !== identityOf(wanted)) {
      throw new UserError(
        'run-exists',
        `${this.path} holds another run: ${describeDifference(known, wanted)}`,
        'Choose another name with --run, give the same values, or remove the folder.',
      );
    }
    const { threads, overlap, pipeline, checkReplicas, mapTables, groupSize, checkpoint } = wanted.config;
    const always = { overlap, pipeline, checkReplicas, mapTables, groupSize, checkpoint };
    const free = { ...always, ...(threads !== undefined && { threads }) };
    const config = { ...known.config, ...free };
    return new RunFolder(this.path, { ...known, config }, { lock: this.#lock, identity: this.identity });
  }

  /** The first candidate path that exists; the absolute one if none does. */
  find({ relative: near, absolute }: Place): string {
    const candidates = [resolve(this.path, near), absolute];
    return candidates.find(candidate => existsSync(candidate)) ?? absolute;
  }

  get events(): string {
    return join(this.path, 'events.jsonl');
  }

  get report(): string {
    return join(this.path, 'report.json');
  }

  get priors(): string {
    return join(this.path, 'priors.json');
  }

  get ranks(): string {
    return join(this.path, 'ranks.safetensors');
  }

  /** The current identity, and those from when the run had fewer epochs. */
  get identities(): readonly [string, ...string[]] {
    return [this.identity, ...(this.description.shorter ?? [])];
  }

  checkpoints(): CheckpointFolder {
    const folder = join(this.path, 'checkpoints');
    return new CheckpointFolder(folder, this.identities, async () => {
      await this.#verified;
      this.#lock?.assertHeld();
    });
  }

  /** No checkpoint is written before `verified` has resolved, and none at all when it rejects. */
  requireVerified(verified: Promise<void>): void {
    verified.catch(() => undefined); // handled where a checkpoint is written
    this.#verified = verified;
  }
}

function writeRunFile(path: string, description: RunDescription): void {
  const file = { format: 'turbogr-run', version: 2, ...description } as const;
  const text = JSON.stringify({ ...file, checksum: checksumOf(file) }, null, 2);
  writeFileAtomic(join(path, 'run.json'), `${text}\n`);
}

function checksumOf(file: Omit<RunFile, 'checksum'>): string {
  return sha256(canonicalJson(file));
}

function readRunFile(path: string): RunFile {
  const file = join(path, 'run.json');
  if (!existsSync(file)) {
    throw new UserError(
      'not-a-run',
      `${path} holds no run (no run.json)`,
      'Give the folder that `npx turbogr train` named.',
    );
  }
  const refuse = (why: string, cause?: unknown) =>
    new UserError(
      'damaged-run',
      `${file} ${why}`,
      'Restore the file, or train a new run with another --run folder.',
      cause === undefined ? {} : { cause },
    );
  const text = readTextFile(file);
  if (text === undefined) throw refuse('is not a regular file');
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw refuse('is not JSON: damaged or truncated', cause);
  }
  const found = RUN_FILE.safeParse(json);
  if (!found.success) {
    const [issue] = found.error.issues;
    throw refuse(`is not a valid run file: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`.trim());
  }
  const { checksum, ...content } = found.data;
  if (checksumOf(content) !== checksum) throw refuse('does not match its checksum: it was edited or damaged');
  return found.data;
}

/** How two runs differ, with both values. */
function describeDifference(known: RunDescription, wanted: RunDescription): string {
  const differences = configDifferences(known.config, wanted.config, FREE_KEYS);
  if (known.model !== wanted.model) differences.unshift(`model ${known.model}, now ${wanted.model}`);
  if (known.fingerprint !== wanted.fingerprint) {
    differences.push(`data ${known.fingerprint.slice(0, 12)}, now ${wanted.fingerprint.slice(0, 12)}`);
  } else if (known.content !== wanted.content) {
    differences.push('other actions or features in the data');
  }
  if (known.initialWeights?.sha256 !== wanted.initialWeights?.sha256) {
    const name = (weights: RunDescription['initialWeights']) => weights?.place.absolute ?? 'none';
    differences.push(`initial weights ${name(known.initialWeights)}, now ${name(wanted.initialWeights)}`);
  }
  return differences.join('; ');
}

/** Whether a path recorded by a run lies inside it. */
export function isInside({ relative: near }: Place): boolean {
  return near !== '..' && !near.startsWith('../') && !isAbsolute(near);
}
