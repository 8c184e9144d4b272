// Negative items for the sampled losses: where they are drawn from, and the correction that the draw asks for.
//
//   uniform     any item of the catalogue
//   popularity  in proportion to count^power; an item never seen counts as seen once
//   in-batch    the batch's own positives, which favours popular items as the log does
//
// T tokens, R negatives a token, V items.

import type { Device } from '../native/device.js';
import { type AliasTable, aliasTable } from '../ops/alias-table.js';
import { drawNegatives, type Sampler } from '../ops/draw-negatives.js';
import type { Tape } from '../ops/tape.js';
import type { Tensor } from '../tensor/tensor.js';

export interface NegativeSettings {
  readonly kind: 'uniform' | 'popularity' | 'in-batch';
  /** R. */
  readonly count: number;
  /** Subtract the log of the sampling probability from the logits. On unless the draw is uniform. */
  readonly logq?: boolean | undefined;
  readonly power: number;
}

export class NegativeSampler {
  readonly #settings: NegativeSettings;
  readonly #items: number;
  readonly #table: AliasTable | undefined;
  /** [V] log of the sampling probability; absent when it is not corrected for. */
  readonly logq: Tensor<'f32'> | undefined;

  /** `counts`: training events of each item. */
  constructor(device: Device, settings: NegativeSettings, counts: Int32Array) {
    this.#settings = settings;
    this.#items = counts.length;
    if (settings.kind === 'uniform') return;
    const power = settings.kind === 'popularity' ? settings.power : 1;
    const weights = Float32Array.from(counts, count => Math.max(1, count) ** power);
    using uploaded = device.from(weights);
    this.#table = aliasTable(device, uploaded);
    if (settings.logq ?? true) this.logq = this.#table.logq;
  }

  /** [T, R] ids, which the caller owns. The loss masks those equal to the token's positive. */
  draw(tape: Tape, positives: Tensor<'i32'>): Tensor<'i32'> {
    const ids = tape.device.tensor([positives.size, this.#settings.count], 'i32');
    drawNegatives(tape.device, ids, tape.random(), this.#from(positives));
    return ids;
  }

  #from(positives: Tensor<'i32'>): Sampler {
    const { kind } = this.#settings;
    if (kind === 'in-batch') return { kind, positives };
    return this.#table ? { kind: 'popularity', table: this.#table } : { kind: 'uniform', count: this.#items };
  }
}
