// The training objective: the configured loss over a batch's states, with negatives where it needs them.
//
// T tokens, R negatives a token.

import type { LossConfig } from '../config/schema.js';
import type { Device } from '../native/device.js';
import { NegativeSampler } from '../negatives/negative-sampler.js';
import { bce } from '../ops/bce.js';
import { fullSoftmax } from '../ops/full-softmax.js';
import { gbce } from '../ops/gbce.js';
import { sampledSoftmax } from '../ops/sampled-softmax.js';
import type { Table } from '../ops/table.js';
import type { Tape } from '../ops/tape.js';
import type { Tensor } from '../tensor/tensor.js';

export interface ObjectiveInput {
  states: Tensor<'f32'>; // [T, D]
  items: Table; // [V, D]
  targets: Tensor<'i32'>; // [T]
  /** What the summed loss is divided by: the tokens of all batches of the step. */
  meanOver: number;
}

export class Objective {
  readonly #config: LossConfig;
  readonly #sampler: NegativeSampler | undefined;

  /** `counts`: training events of each item, for popularity sampling. */
  constructor(device: Device, config: LossConfig, counts: Int32Array) {
    this.#config = config;
    if (config.kind !== 'full-softmax') this.#sampler = new NegativeSampler(device, config.negatives, counts);
  }

  /** The loss, [1, 1], and what must live until the table's update is enqueued; the caller owns that. */
  apply(tape: Tape, { states, items, targets, meanOver }: ObjectiveInput): { loss: Tensor<'f32'>; held: Tensor[] } {
    const { kind, temperature, normalizeUser, normalizeItem, calibration } = this.#config;
    const options = { positives: targets, temperature, normalizeUser, normalizeItem, meanOver };
    if (!this.#sampler) return { loss: fullSoftmax(tape, states, items, options), held: [] };
    const negatives = this.#sampler.draw(tape, targets);
    const sampled = { ...options, negatives };
    const { logq } = this.#sampler;
    const loss =
      kind === 'bce'
        ? bce(tape, states, items, sampled)
        : kind === 'gbce'
          ? gbce(tape, states, items, { ...sampled, t: calibration })
          : sampledSoftmax(tape, states, items, { ...sampled, ...(logq && { logq }) });
    return { loss, held: [negatives] };
  }
}
