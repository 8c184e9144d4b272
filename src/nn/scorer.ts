// Scores states against items: logit = state . item / temperature, with either side L2-normalised if the model was trained
// that way. Losses, evaluation and serving all use this, so ranking matches training.
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
  /** L2-normalise the state. */
  readonly normalizeUser: boolean;
  /** L2-normalise the item row. */
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

  /** [V, D] rows whose dot product with a state ranks the items. */
  itemVectors(tape: Tape): Tensor<'f32'> {
    const rows = this.#floats(tape);
    return this.scoring.normalizeItem ? l2Norm(tape, rows) : rows;
  }

  /** [V, D] unit-length rows: their dot products are cosines. */
  itemDirections(tape: Tape): Tensor<'f32'> {
    return l2Norm(tape, this.#floats(tape));
  }

  /** [V, D] rows of the table as f32; a copy if it is stored differently. */
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

  /** The same for selected states, [ids, D], on the device. */
  queryRows(tape: Tape, states: Tensor<'f32'>, ids: Tensor<'i32'>): Tensor<'f32'> {
    return gatherRows(tape, this.#sides(tape, states), ids, 1 / this.scoring.temperature);
  }

  #sides(tape: Tape, states: Tensor<'f32'>): Tensor<'f32'> {
    return this.scoring.normalizeUser ? l2Norm(tape, states) : states;
  }
}
