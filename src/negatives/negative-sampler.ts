// Negatives for the sampled losses: their distribution, how tokens share them, and the correction for the sampling
// probability.
//
//   uniform     any item of the catalogue
//   popularity  proportional to count^power; unseen items count as seen once
//   in-batch    the lane's own positives, which favours popular items as the log does
//   mixed       a share of each; corrected by the mixture's probability
//
// T tokens, R negatives per token, G groups of k tokens that share, P rows of a pool, V items.

import type { RandomKey, StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import { type AliasTable, aliasTable } from '../ops/alias-table.js';
import { drawNegatives, drawPool, type Sampler } from '../ops/draw-negatives.js';
import { type MaskedEvents, maskNegatives } from '../ops/mask-negatives.js';
import { shareNegatives } from '../ops/share-negatives.js';
import type { Tensor } from '../tensor/tensor.js';
import { logOfMixture, type Shares, splitCount } from './mixture.js';

export interface NegativeSettings {
  readonly kind: 'uniform' | 'popularity' | 'in-batch' | 'mixed';
  /** R. */
  readonly count: number;
  /** Subtract the log of the sampling probability from the logits; default: if draws are not uniform. */
  readonly logq?: boolean | undefined;
  readonly power: number;
  /** Shares of the kinds in a mixed draw. */
  readonly shares: Shares;
  /** P; 0 for separate draws per token. */
  readonly pool: number;
  /** What is excluded from the negatives. */
  readonly mask: 'positive' | 'history';
  readonly sharing: { readonly factor: number; readonly of: 'outputs' | 'scalars' };
}

/** A lane's negatives. The caller owns the tensors. */
export type Draws =
  /** Separate draws per token. */
  | { readonly kind: 'tokens'; readonly ids: Tensor<'i32'> } // [T, R]
  /** Draws shared by the tokens of a group. */
  | { readonly kind: 'groups'; readonly ids: Tensor<'i32'>; readonly members: Tensor<'i32'> } // [G, k R], [G, k]
  /** One pool for all tokens. */
  | { readonly kind: 'pool'; readonly ids: Tensor<'i32'> }; // [1, P]

/** Whether all tokens share one pool; otherwise each has its own draws, from a pool or not. */
export function drawsWholePool({ pool, count }: { pool: number; count: number }): boolean {
  return pool > 0 && count >= pool;
}

/** Random purposes of further draws, beyond the range that tapes use. */
const PURPOSE = { pool: 1 << 20, share: 2 << 20, popularity: 3 << 20, inBatch: 4 << 20 };

export class NegativeSampler {
  readonly #device: Device;
  readonly #settings: NegativeSettings;
  readonly #items: number;
  readonly #table: AliasTable | undefined;
  /** [V, 1] log of the sampling probability; absent when it is not corrected for. */
  readonly logq: Tensor<'f32'> | undefined;

  /** `counts`: training events of each item. */
  constructor(device: Device, settings: NegativeSettings, counts: Int32Array) {
    this.#device = device;
    this.#settings = settings;
    this.#items = counts.length;
    if (settings.kind === 'uniform') return;
    const power = settings.kind === 'in-batch' ? 1 : settings.power;
    const weights = Float32Array.from(counts, count => Math.max(1, count) ** power);
    using uploaded = device.from(weights);
    this.#table = aliasTable(device, uploaded);
    if (!(settings.logq ?? true)) return;
    this.logq = this.#table.logq;
    if (settings.kind === 'mixed') device.upload(this.logq, logOfMixture(settings.shares, counts, weights));
  }

  /** Shape of what is drawn for `tokens` tokens. */
  shape(tokens: number): { positions: number; draws: number } {
    const { count, pool, sharing } = this.#settings;
    if (drawsWholePool(this.#settings)) return { positions: 1, draws: pool };
    return { positions: Math.ceil(tokens / sharing.factor), draws: sharing.factor * count };
  }

  /** Keyed by lane and position of each draw, so independent of threads, ranks and resumption. */
  draw(events: MaskedEvents, key: RandomKey, stream?: StreamName): Draws {
    const { count, pool, mask, sharing } = this.#settings;
    const { targets } = events;
    const rows = pool > 0 ? this.#pool(targets, key, stream) : undefined;
    if (rows && drawsWholePool(this.#settings)) return { kind: 'pool', ids: rows };
    const ids = this.#device.tensor([targets.size, count], 'i32');
    if (rows) drawNegatives(this.#device, ids, key, { kind: 'in-batch', positives: rows }, stream);
    else this.#drawOwn(ids, targets, key, stream);
    rows?.dispose();
    if (sharing.factor > 1) return this.#share(ids, targets, key, stream);
    if (mask === 'history') maskNegatives(this.#device, ids, events, stream);
    return { kind: 'tokens', ids };
  }

  #drawOwn(ids: Tensor<'i32'>, positives: Tensor<'i32'>, key: RandomKey, stream?: StreamName): void {
    const { kind, count, shares } = this.#settings;
    if (kind !== 'mixed') {
      drawNegatives(this.#device, ids, key, this.#from(positives), stream);
      return;
    }
    const [uniform, popularity, inBatch] = splitCount(count, shares);
    const parts: [number, Sampler, number][] = [
      [uniform, { kind: 'uniform', count: this.#items }, 0],
      [popularity, { kind: 'popularity', table: this.#table! }, PURPOSE.popularity],
      [inBatch, { kind: 'in-batch', positives }, PURPOSE.inBatch],
    ];
    let from = 0;
    for (const [columns, sampler, purpose] of parts) {
      if (columns === 0) continue;
      const part = ids.columns(from, columns);
      drawNegatives(this.#device, part, { ...key, purpose: key.purpose + purpose }, sampler, stream);
      from += columns;
    }
  }

  /** [1, P] distinct rows. */
  #pool(positives: Tensor<'i32'>, key: RandomKey, stream?: StreamName): Tensor<'i32'> {
    const rows = this.#device.tensor([1, this.#settings.pool], 'i32');
    drawPool(this.#device, rows, { ...key, purpose: key.purpose + PURPOSE.pool }, this.#from(positives), stream);
    return rows;
  }

  #share(drawn: Tensor<'i32'>, positives: Tensor<'i32'>, key: RandomKey, stream?: StreamName): Draws {
    const { factor } = this.#settings.sharing;
    const shuffle = { ...key, purpose: key.purpose + PURPOSE.share };
    const { members, negatives } = shareNegatives(this.#device, shuffle, { positives, drawn, factor }, stream);
    drawn.dispose();
    return { kind: 'groups', ids: negatives, members };
  }

  #from(positives: Tensor<'i32'>): Sampler {
    const { kind } = this.#settings;
    if (kind === 'in-batch') return { kind, positives };
    return this.#table ? { kind: 'popularity', table: this.#table } : { kind: 'uniform', count: this.#items };
  }
}
