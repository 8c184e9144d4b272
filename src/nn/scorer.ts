// States against items: logit = state . item / temperature, either side divided by its length where the model was trained
// so. Losses, evaluation and serving all ask here, so that what is ranked is what was trained.
//
// T tokens, C states, V items, D width.

import { copyRows } from '../ops/copy-rows.js';
import { gatherRows } from '../ops/gather-rows.js';
import { l2Norm } from '../ops/l2-norm.js';
import type { LogitOptions } from '../ops/sampled-loss.js';
import type { Table } from '../ops/table.js';
import type { Tape } from '../ops/tape.js';
import { isF32, type Tensor } from '../tensor/tensor.js';

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

  constructor(items: Table, scoring: Scoring) {
    this.items = items;
    this.scoring = scoring;
  }

  /** How a loss forms its logits. */
  get logit(): Required<Pick<LogitOptions, keyof Scoring>> {
    const { temperature, normalizeUser, normalizeItem } = this.scoring;
    return { temperature, normalizeUser, normalizeItem };
  }

  /** [V, D] rows by whose dot product with a state items are ranked. */
  itemVectors(tape: Tape): Tensor<'f32'> {
    const rows = this.#floats(tape);
    return this.scoring.normalizeItem ? l2Norm(tape, rows) : rows;
  }

  /** [V, D] rows of length 1: their dot products are cosines. */
  itemDirections(tape: Tape): Tensor<'f32'> {
    return l2Norm(tape, this.#floats(tape));
  }

  /** [V, D] rows of the table, a copy if it is stored otherwise. */
  #floats(tape: Tape): Tensor<'f32'> {
    const { value } = this.items;
    if (isF32(value)) return value;
    const to = tape.output(value.rows, value.cols);
    copyRows(tape.device, { rows: value, from: 0, to, at: 0, count: value.rows });
    return to;
  }

  /** [C * D] states on the host, scaled so that their dot product with an item's vector is the logit. */
  async queries(tape: Tape, states: Tensor<'f32'>): Promise<Float32Array> {
    const { temperature } = this.scoring;
    const read = await tape.device.read(this.#sides(tape, states));
    return read.map(x => x / temperature);
  }

  /** The same for some of the states, [ids, D], left on the device. */
  queryRows(tape: Tape, states: Tensor<'f32'>, ids: Tensor<'i32'>): Tensor<'f32'> {
    return gatherRows(tape, this.#sides(tape, states), ids, 1 / this.scoring.temperature);
  }

  #sides(tape: Tape, states: Tensor<'f32'>): Tensor<'f32'> {
    return this.scoring.normalizeUser ? l2Norm(tape, states) : states;
  }
}
