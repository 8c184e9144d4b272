// Serves the current model and replaces it by newer ones: the new one is opened while the old one still serves, new requests go
// to it, and the old one is closed after its last request. No request waits or is dropped.

import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { openRecommender, type PlannedRequest, type Recommender } from '../jobs/recommend.js';
import type { Recommendation } from '../jobs/recommend-request.js';
import { UserError } from '../util/errors.js';
import { Batcher, type BatcherOptions, Overloaded } from './batcher.js';

export interface HostOptions {
  run: string;
  threads?: number;
  items?: { file: string; key?: string };
  /** Verify the store's checksums before serving (default true). */
  verify?: boolean;
  batching: BatcherOptions;
}

/** A model that is being served. */
export interface ServedModel {
  readonly name: string;
  /** The first digits of the weights' digest: the same weights, the same version. */
  readonly version: string;
  readonly recommender: Recommender;
  readonly batcher: Batcher<PlannedRequest, Recommendation[]>;
  readonly loadedAt: Date;
}

interface Slot extends ServedModel {
  leases: number;
  superseded: boolean;
}

export class ModelHost {
  readonly #options: HostOptions;
  #slot: Slot;
  /** State of the folder when its model was opened. */
  #seen: string;
  #reloading: Promise<boolean> | undefined;

  static async open(options: HostOptions): Promise<ModelHost> {
    const seen = folderState(options.run);
    return new ModelHost(options, await openSlot(options), seen);
  }

  private constructor(options: HostOptions, slot: Slot, seen: string) {
    this.#options = options;
    this.#slot = slot;
    this.#seen = seen;
  }

  get model(): ServedModel {
    return this.#slot;
  }

  /** Runs `work` with the current model, which stays open until it is done. */
  async use<T>(work: (model: ServedModel) => Promise<T>): Promise<T> {
    const slot = this.#slot;
    const { maxBatch, maxQueue } = this.#options.batching;
    if (slot.leases >= maxBatch + maxQueue) throw new Overloaded('too many requests are in progress');
    slot.leases++;
    try {
      return await work(slot);
    } finally {
      slot.leases--;
      closeIfUnused(slot);
    }
  }

  /** Reopens the run if its folder has changed; returns whether a new model serves. On failure the old one stays. */
  reload(): Promise<boolean> {
    this.#reloading ??= this.#reload().finally(() => {
      this.#reloading = undefined;
    });
    return this.#reloading;
  }

  async #reload(): Promise<boolean> {
    const state = folderState(this.#options.run);
    if (state === this.#seen) return false;
    const slot = await openSlot(this.#options);
    this.#seen = state;
    const old = this.#slot;
    if (slot.version === old.version) {
      slot.recommender.close();
      return false;
    }
    this.#slot = slot;
    old.superseded = true;
    closeIfUnused(old);
    return true;
  }

  async close(): Promise<void> {
    await this.#reloading?.catch(() => false);
    await this.#slot.batcher.drain();
    this.#slot.superseded = true;
    closeIfUnused(this.#slot);
  }
}

function closeIfUnused(slot: Slot): void {
  if (slot.superseded && slot.leases === 0) slot.recommender.close();
}

async function openSlot({ run, threads, items, verify = true, batching }: HostOptions): Promise<Slot> {
  const recommender = openRecommender(run, threads === undefined ? {} : { threads });
  try {
    if (verify) await recommender.verify();
    if (items) await recommender.loadItems(items.file, items.key);
    const digest = await recommender.run.model.digest();
    // Tables and statistics are built before the first request.
    await recommender.recommend([{ item: recommender.originalItem(0), time: recommender.currentTime() }], { k: 1 });
    return {
      name: basename(resolve(run)),
      version: digest.slice(0, 12),
      recommender,
      batcher: new Batcher(requests => recommender.answer(requests), batching),
      loadedAt: new Date(),
      leases: 0,
      superseded: false,
    };
  } catch (error) {
    recommender.close();
    throw error;
  }
}

/** Names, sizes and times of the files that determine the model: cheap enough to poll. */
function folderState(run: string): string {
  if (!existsSync(run))
    throw new UserError('not-a-run', `${run} does not exist`, 'Give the folder that `npx turbogr train` named.');
  const look = (folder: string) =>
    existsSync(folder)
      ? readdirSync(folder)
          .filter(name => /^step-|\.json$|\.safetensors$/.test(name) && name !== 'report.json')
          .map(name => ({ name, ...statOf(join(folder, name)) }))
      : [];
  return JSON.stringify([look(run), look(join(run, 'checkpoints'))]);
}

function statOf(path: string): { size: number; modified: number } | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  return found && { size: found.size, modified: found.mtimeMs };
}
