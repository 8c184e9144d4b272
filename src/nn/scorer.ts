// States against items: logit = state . item / temperature, either side divided by its length where the model was trained
// so. Losses, evaluation and serving all ask here, so that what is ranked is what was trained.
//
// T tokens, C states, V items, D width.

import { l2Norm } from '../ops/l2-norm.js';
import type { LogitOptions } from '../ops/sampled-loss.js';
import type { Table } from '../ops/table.js';
import type { Tape } from '../ops/tape.js';
import type { Tensor } from '../tensor/tensor.js';

export interface Scoring {
  /** Logits are divided by it. */
  readonly temperature: number;
  /** Divide the state by its length. */
  readonly normalizeUser: boolean;
  /** Divide the item row by its length. */
  readonly normalizeItem: boolean;
}

export class Scorer {
  readonly items: Table;
  readonly scoring: Scoring;
  readonly #rows: Tensor<'f32'>;

  /** `rows` are the table's. */
  constructor(items: Table, rows: Tensor<'f32'>, scoring: Scoring) {
    this.items = items;
    this.scoring = scoring;
    this.#rows = rows;
  }

  /** How a loss forms its logits. */
  get logit(): Required<Pick<LogitOptions, keyof Scoring>> {
    const { temperature, normalizeUser, normalizeItem } = this.scoring;
    return { temperature, normalizeUser, normalizeItem };
  }

  /** [V, D] rows by whose dot product with a state items are ranked. */
  itemVectors(tape: Tape): Tensor<'f32'> {
    return this.scoring.normalizeItem ? l2Norm(tape, this.#rows) : this.#rows;
  }

  /** [V, D] rows of length 1: their dot products are cosines. */
  itemDirections(tape: Tape): Tensor<'f32'> {
    return l2Norm(tape, this.#rows);
  }

  /** [C * D] states on the host, scaled so that their dot product with an item's vector is the logit. */
  async queries(tape: Tape, states: Tensor<'f32'>): Promise<Float32Array> {
    const { temperature, normalizeUser } = this.scoring;
    const read = await tape.device.read(normalizeUser ? l2Norm(tape, states) : states);
    return read.map(x => x / temperature);
  }
}
