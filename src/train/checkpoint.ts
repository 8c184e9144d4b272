// Checkpoints on disk: a folder per step with safetensors files and an index that carries their checksums. Written under
// a temporary name, flushed, then renamed, so a checkpoint is there whole or not at all; a damaged one is recognised by
// its checksums and the one before it is used. What goes in is decided by the trainer; this file knows names and bytes.
// Reading never changes anything on disk; writing, pruning and sweeping are for the process that holds the run's lock.
//
// All ranks write together: each writes its own rows, rank 0 everything else and the index last.
//
//   checkpoints/step-00000470/{weights.safetensors, weights-0-of-2.safetensors, ..., index.json}

import { type Dirent, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { makeFolder, syncFolder, writeFileAtomic } from '../util/atomic-file.js';
import { UserError } from '../util/errors.js';
import { canonicalJson, sha256, sha256File } from '../util/hash.js';
import { errorCode } from '../util/process-identity.js';
import { isRegularFile, readTextFile } from '../util/regular-file.js';
import { ownedRows, type RowShard, WHOLE } from '../util/row-shard.js';
import { type StoredDtype, SafetensorsWriter } from '../util/safetensors.js';
import { CheckpointTensors, shardName } from './checkpoint-tensors.js';

const FORMAT = 'turbogr-checkpoint';
const VERSION = 4;
const STEP_FOLDER = /^step-(\d{8,})$/;
const TEMP_FOLDER = /^\.step-\d+\.tmp$/;
const FILE_NAME = /^[\w-]+\.safetensors$/;

/** A tensor to store. `read` is called when it is written, so only one piece of one tensor is in memory at a time. */
export interface StoredTensor {
  name: string;
  dtype: StoredDtype;
  /** Shape of the whole tensor. */
  shape: readonly number[];
  /** Which rows `read` returns; default all. */
  shard?: RowShard;
  /** Shape of what `read` returns, if it does not follow from the whole shape. */
  shardShape?: readonly number[];
  read(): AsyncIterable<NodeJS.ArrayBufferView>;
}

/** By file name without extension: `weights` is written to `weights.safetensors`. */
export type StoredFiles = Readonly<Record<string, readonly StoredTensor[]>>;

export interface CheckpointContent {
  step: number;
  /** Step of the checkpoint with the best validation result so far, possibly this one; null without validation. */
  best: number | null;
  /** Everything else that is not a tensor: cursor, figures. Plain JSON. */
  state: unknown;
  /** SHA-256 of every file that was written. */
  files: Readonly<Record<string, string>>;
}

/** A checkpoint whose checksums were verified. */
export interface Checkpoint {
  readonly path: string;
  readonly step: number;
  readonly best: number | null;
  readonly state: unknown;
  has(file: string): boolean;
  /** Opens one of its files; the caller closes it. */
  open(file: string): CheckpointTensors;
}

/** A checkpoint that was skipped, and why. */
export interface RefusedCheckpoint {
  readonly path: string;
  readonly reason: string;
}

const INDEX = z.object({
  format: z.literal(FORMAT, 'it is not one of ours'),
  version: z.literal(VERSION, 'this program does not support its version'),
  identity: z.string(),
  step: z.int().nonnegative(),
  best: z.int().nonnegative().nullable(),
  state: z.unknown(),
  files: z.record(z.string().regex(FILE_NAME), z.string()),
  /** SHA-256 of all of the above. */
  checksum: z.string(),
});
type Index = z.infer<typeof INDEX>;

function checksumOf(index: Omit<Index, 'checksum'>): string {
  const { format, version, identity, step, best, state, files } = index;
  return sha256(canonicalJson({ format, version, identity, step, best, state, files }));
}

function folderName(step: number): string {
  return `step-${String(step).padStart(8, '0')}`;
}

export class CheckpointFolder {
  readonly path: string;
  readonly #identities: readonly string[];
  readonly #mayWrite: () => Promise<void>;

  /** Steps whose checkpoint was refused; they never count towards the newest ones to keep. */
  readonly #refused = new Set<number>();

  /**
   * `identities` are hashes of config and data: checkpoints with any other identity are refused as foreign. New checkpoints
   * get the first; the others belong to the same run when it had fewer epochs.
   * Nothing is written when `mayWrite` throws, for example because another process took over the run.
   */
  constructor(path: string, identities: readonly string[], mayWrite: () => Promise<void> = async () => {}) {
    this.path = path;
    this.#identities = identities;
    this.#mayWrite = mayWrite;
  }

  /** Removes partial checkpoints left by a killed process. */
  sweep(): void {
    for (const { name } of this.#entries()) {
      if (TEMP_FOLDER.test(name)) rmSync(join(this.path, name), { recursive: true, force: true });
    }
  }

  /** Creates the temporary folder that a checkpoint's files are written to. */
  async begin(step: number): Promise<string> {
    const temp = this.#temp(step);
    await this.#mayWrite();
    makeFolder(this.path);
    rmSync(temp, { recursive: true, force: true });
    mkdirSync(temp);
    return temp;
  }

  /** Discards a partial checkpoint: on a full disk the next attempt needs its space. */
  abandon(step: number): void {
    rmSync(this.#temp(step), { recursive: true, force: true });
  }

  /** Writes the index and makes the checkpoint visible. */
  async seal(content: CheckpointContent): Promise<string> {
    const name = folderName(content.step);
    const temp = this.#temp(content.step);
    this.#writeIndex(temp, content);
    await this.#mayWrite();
    const final = join(this.path, name);
    rmSync(final, { recursive: true, force: true });
    renameSync(temp, final);
    syncFolder(this.path);
    this.#refused.delete(content.step);
    return final;
  }

  #temp(step: number): string {
    return join(this.path, `.${folderName(step)}.tmp`);
  }

  #writeIndex(temp: string, { step, best, state, files }: CheckpointContent): void {
    for (const file of Object.keys(files)) {
      if (existsSync(join(temp, file))) continue;
      throw new UserError(
        'folder-not-shared',
        `${file} of a checkpoint was written, but is not in ${temp} here`,
        'Ranks on several hosts need a run folder that all of them share: give --run on such a disk.',
      );
    }
    const index: Omit<Index, 'checksum'> = {
      format: FORMAT,
      version: VERSION,
      identity: this.#identities[0]!,
      step,
      best,
      state,
      files,
    };
    writeFileAtomic(join(temp, 'index.json'), JSON.stringify({ ...index, checksum: checksumOf(index) }, null, 1));
  }

  /** Steps that have a folder, newest first; not verified. */
  steps(): number[] {
    return this.#entries()
      .flatMap(entry => (entry.isDirectory() ? [STEP_FOLDER.exec(entry.name)?.[1]] : []))
      .filter(digits => digits !== undefined)
      .map(Number)
      .sort((a, b) => b - a);
  }

  #entries(): Dirent[] {
    return existsSync(this.path) ? readdirSync(this.path, { withFileTypes: true }) : [];
  }

  /** The newest valid checkpoint, and the newer ones that were refused. */
  latest(): { checkpoint: Checkpoint | undefined; refused: RefusedCheckpoint[] } {
    const refused: RefusedCheckpoint[] = [];
    for (const step of this.steps()) {
      const found = this.#loadWithBest(step);
      if ('state' in found) return { checkpoint: found, refused };
      this.#refused.add(step);
      refused.push(found);
    }
    return { checkpoint: undefined, refused };
  }

  load(step: number): Checkpoint | RefusedCheckpoint {
    return verifyCheckpoint(join(this.path, folderName(step)), this.#identities);
  }

  /** A run ends with its best weights, so a checkpoint is useless without the best one it refers to. */
  #loadWithBest(step: number): Checkpoint | RefusedCheckpoint {
    const found = this.load(step);
    if (!('state' in found) || found.best === null || found.best === step) return found;
    const best = this.load(found.best);
    if ('state' in best) return found;
    return { path: found.path, reason: `the best one, ${basename(best.path)}, is refused: ${best.reason}` };
  }

  /**
   * Called after the checkpoint of step `newest` was written: removes the older ones except the newest `keep` valid ones and
   * their best. Higher step numbers were refused when the run started and are kept for inspection.
   */
  prune({ keep, newest }: { keep: number; newest: number }): void {
    const older = this.steps().filter(step => step <= newest);
    const kept = older.filter(step => !this.#refused.has(step)).slice(0, keep);
    const needed = new Set([...kept, ...kept.map(step => this.#bestOf(step))]);
    for (const step of older) {
      if (!needed.has(step)) rmSync(join(this.path, folderName(step)), { recursive: true, force: true });
    }
  }

  #bestOf(step: number): number | null {
    const index = readIndex(join(this.path, folderName(step)));
    return typeof index === 'string' ? null : index.best;
  }
}

/** Writes this rank's part of a checkpoint: its shards, and on rank 0 all replicated tensors. Returns the checksums. */
export async function writeCheckpointFiles(
  folder: string,
  files: StoredFiles,
  rank: number,
): Promise<Record<string, string>> {
  const checksums: Record<string, string> = {};
  const write = async (name: string, tensors: readonly StoredTensor[]): Promise<void> => {
    const path = join(folder, `${name}.safetensors`);
    await writeTensors(path, tensors);
    checksums[`${name}.safetensors`] = sha256File(path);
  };
  for (const [file, tensors] of Object.entries(files)) {
    const divided = tensors.filter(({ shard }) => (shard?.count ?? 1) > 1);
    if (rank === 0)
      await write(
        file,
        tensors.filter(tensor => !divided.includes(tensor)),
      );
    const shard = divided[0]?.shard;
    // Replicas of a shard: the first rank writes it.
    if (shard?.index === rank) await write(shardName(file, shard), divided.map(ownRows));
  }
  return checksums;
}

/** A sharded tensor as its shard's file stores it. */
function ownRows(tensor: StoredTensor): StoredTensor {
  const [rows = 0, ...cols] = tensor.shape;
  return { ...tensor, shape: tensor.shardShape ?? [ownedRows(rows, tensor.shard ?? WHOLE), ...cols] };
}

async function writeTensors(path: string, tensors: readonly StoredTensor[]): Promise<void> {
  const specs = Object.fromEntries(tensors.map(({ name, dtype, shape }) => [name, { dtype, shape }]));
  const writer = new SafetensorsWriter(path, specs, { format: FORMAT });
  try {
    for (const tensor of tensors) {
      for await (const piece of tensor.read()) writer.append(tensor.name, piece);
    }
  } catch (error) {
    writer.abandon();
    throw error;
  }
  writer.close();
}

function verifyCheckpoint(path: string, identities: readonly string[]): Checkpoint | RefusedCheckpoint {
  const index = readIndex(path);
  if (typeof index === 'string') return { path, reason: index };
  if (!identities.includes(index.identity)) {
    return {
      path,
      reason: `it belongs to another run (${index.identity.slice(0, 12)}, expected ${identities[0]!.slice(0, 12)})`,
    };
  }
  if (basename(path) !== folderName(index.step)) return { path, reason: `it is the checkpoint of step ${index.step}` };
  for (const [file, checksum] of Object.entries(index.files)) {
    const actual = hashIfFile(join(path, file));
    if (actual === undefined) return { path, reason: `${file} is missing` };
    if (actual !== checksum) return { path, reason: `${file} does not match its checksum: damaged or truncated` };
  }
  return checkpointAt(path, index);
}

/** A checkpoint that another rank has verified. */
export function trustedCheckpoint(path: string): Checkpoint {
  const index = readIndex(path);
  if (typeof index !== 'string') return checkpointAt(path, index);
  throw new UserError(
    'folder-not-shared',
    `${path}, from which rank 0 resumes, cannot be read here: ${index}`,
    'Ranks on several hosts need a run folder that all of them share: give --run on such a disk.',
  );
}

function checkpointAt(path: string, { step, best, state, files }: Index): Checkpoint {
  const names = Object.keys(files);
  const has = (file: string): boolean => names.includes(`${file}.safetensors`);
  return { path, step, best, state, has, open: file => new CheckpointTensors(path, file, names) };
}

/** Undefined unless it is a regular file: reading a FIFO would never end, and a pruned file is gone. */
function hashIfFile(path: string): string | undefined {
  if (!isRegularFile(path)) return undefined;
  try {
    return sha256File(path);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

function readIndex(path: string): Index | string {
  const text = readTextFile(join(path, 'index.json'));
  if (text === undefined) return 'index.json is missing';
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return 'index.json is not JSON: damaged or truncated';
  }
  const index = INDEX.safeParse(json);
  if (!index.success) return `index.json: ${index.error.issues[0]!.message}`;
  return checksumOf(index.data) === index.data.checksum ? index.data : 'index.json does not match its checksum';
}
