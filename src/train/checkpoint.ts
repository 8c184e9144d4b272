// Checkpoints on disk: a folder per step with safetensors files and an index that carries their checksums. Written under
// a temporary name, flushed, then renamed, so a checkpoint is there whole or not at all; a damaged one is recognised by
// its checksums and the one before it is used. What goes in is decided by the trainer; this file knows names and bytes.
//
//   checkpoints/step-00000470/{weights.safetensors, optimizer.safetensors, index.json}

import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { makeFolder, syncFolder, writeFileAtomic } from '../util/atomic-file.js';
import { UserError } from '../util/errors.js';
import { canonicalJson, sha256, sha256File } from '../util/hash.js';
import { type Dtype, SafetensorsFile, SafetensorsWriter } from '../util/safetensors.js';

const FORMAT = 'turbogr-checkpoint';
const VERSION = 2;
const STEP_FOLDER = /^step-(\d{8,})$/;
const TEMP_FOLDER = /^\.step-\d+\.tmp$/;

/** A tensor to store; `read` is called when its turn comes, so that one tensor at a time is in memory. */
export interface StoredTensor {
  name: string;
  dtype: Dtype;
  shape: readonly number[];
  read(): Promise<NodeJS.ArrayBufferView>;
}

export interface CheckpointContent {
  step: number;
  /** Everything that is not a tensor: cursor, best epoch, figures. Plain JSON. */
  state: unknown;
  /** By file: `weights` and `optimizer` become `weights.safetensors` and so on. */
  files: Readonly<Record<string, readonly StoredTensor[]>>;
}

/** A checkpoint that has been found sound. */
export interface Checkpoint {
  readonly path: string;
  readonly step: number;
  readonly state: unknown;
  /** Opens one of its files; the caller closes it. */
  open(file: string): SafetensorsFile;
}

/** A checkpoint that was passed over, and why. */
export interface Refusal {
  readonly path: string;
  readonly reason: string;
}

const INDEX = z.object({
  format: z.literal(FORMAT, 'it is not one of ours'),
  version: z.literal(VERSION, 'it has a version that this program does not read'),
  identity: z.string(),
  step: z.int().nonnegative(),
  state: z.unknown(),
  files: z.record(z.string(), z.string()),
  /** SHA-256 of all of the above. */
  checksum: z.string(),
});
type Index = z.infer<typeof INDEX>;

function checksumOf(index: Omit<Index, 'checksum'>): string {
  const { format, version, identity, step, state, files } = index;
  return sha256(canonicalJson({ format, version, identity, step, state, files }));
}

export class CheckpointFolder {
  readonly path: string;
  readonly #identity: string;

  /** `identity` says whose checkpoints these are (a hash of config and data): others are refused as foreign. */
  constructor(path: string, identity: string) {
    this.path = path;
    this.#identity = identity;
    makeFolder(path);
    for (const name of readdirSync(path)) {
      if (TEMP_FOLDER.test(name)) rmSync(join(path, name), { recursive: true, force: true });
    }
  }

  async write({ step, state, files }: CheckpointContent): Promise<string> {
    const name = `step-${String(step).padStart(8, '0')}`;
    const temp = join(this.path, `.${name}.tmp`);
    rmSync(temp, { recursive: true, force: true });
    mkdirSync(temp);
    try {
      await this.#fill(temp, { step, state, files });
    } catch (error) {
      rmSync(temp, { recursive: true, force: true }); // on a full disk its room is what the next attempt needs
      throw error;
    }
    const final = join(this.path, name);
    rmSync(final, { recursive: true, force: true });
    renameSync(temp, final);
    syncFolder(this.path);
    return final;
  }

  async #fill(temp: string, { step, state, files }: CheckpointContent): Promise<void> {
    const checksums: Record<string, string> = {};
    for (const [file, tensors] of Object.entries(files)) {
      const path = join(temp, `${file}.safetensors`);
      await writeTensors(path, tensors);
      checksums[`${file}.safetensors`] = sha256File(path);
    }
    const index: Omit<Index, 'checksum'> = {
      format: FORMAT,
      version: VERSION,
      identity: this.#identity,
      step,
      state,
      files: checksums,
    };
    writeFileAtomic(join(temp, 'index.json'), JSON.stringify({ ...index, checksum: checksumOf(index) }, null, 1));
  }

  /** Steps that have a folder, newest first; nothing is said about their soundness. */
  steps(): number[] {
    return readdirSync(this.path)
      .map(name => STEP_FOLDER.exec(name)?.[1])
      .filter(digits => digits !== undefined)
      .map(Number)
      .sort((a, b) => b - a);
  }

  /** The newest sound checkpoint, and those that were refused on the way to it. */
  latest(): { checkpoint: Checkpoint | undefined; refused: Refusal[] } {
    const refused: Refusal[] = [];
    for (const step of this.steps()) {
      const found = this.load(step);
      if ('state' in found) return { checkpoint: found, refused };
      refused.push(found);
    }
    return { checkpoint: undefined, refused };
  }

  load(step: number): Checkpoint | Refusal {
    const path = join(this.path, `step-${String(step).padStart(8, '0')}`);
    return verifyCheckpoint(path, this.#identity);
  }

  /** A checkpoint that must be there, such as the best one. */
  require(step: number): Checkpoint {
    const found = this.load(step);
    if ('state' in found) return found;
    throw new UserError('bad-checkpoint', `${found.path} is refused: ${found.reason}`, 'Train the run again.');
  }

  /** Removes all but the newest `keep` and the one of step `best`. */
  prune(keep: number, best: number | undefined): void {
    for (const step of this.steps().slice(keep)) {
      if (step === best) continue;
      rmSync(join(this.path, `step-${String(step).padStart(8, '0')}`), { recursive: true, force: true });
    }
  }
}

async function writeTensors(path: string, tensors: readonly StoredTensor[]): Promise<void> {
  const specs = Object.fromEntries(tensors.map(({ name, dtype, shape }) => [name, { dtype, shape }]));
  const writer = new SafetensorsWriter(path, specs, { format: FORMAT });
  try {
    for (const tensor of tensors) writer.append(tensor.name, await tensor.read());
  } catch (error) {
    writer.abandon();
    throw error;
  }
  writer.close();
}

/** Checks one checkpoint folder; `identity` undefined accepts any run's, as evaluation and export do. */
export function verifyCheckpoint(path: string, identity: string | undefined): Checkpoint | Refusal {
  const index = readIndex(path);
  if (typeof index === 'string') return { path, reason: index };
  if (identity !== undefined && index.identity !== identity) {
    return {
      path,
      reason: `it belongs to another run (${index.identity.slice(0, 12)}, expected ${identity.slice(0, 12)})`,
    };
  }
  for (const [file, checksum] of Object.entries(index.files)) {
    const at = join(path, file);
    if (!existsSync(at)) return { path, reason: `${file} is missing` };
    if (sha256File(at) !== checksum)
      return { path, reason: `${file} does not match its checksum: damaged or truncated` };
  }
  const open = (file: string): SafetensorsFile => new SafetensorsFile(join(path, `${file}.safetensors`));
  return { path, step: index.step, state: index.state, open };
}

function readIndex(path: string): Index | string {
  const file = join(path, 'index.json');
  if (!existsSync(file)) return 'index.json is missing';
  let json: unknown;
  try {
    json = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return 'index.json is not JSON: damaged or truncated';
  }
  const index = INDEX.safeParse(json);
  if (!index.success) return `index.json: ${index.error.issues[0]!.message}`;
  return checksumOf(index.data) === index.data.checksum ? index.data : 'index.json does not match its checksum';
}
