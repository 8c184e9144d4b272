// Embeds events: the sum of the rows of item, action and side features, and of the position in the sequence.
//
// T tokens, D model width.

import { embeddingGather } from '../ops/embedding-gather.js';
import type { Parameter } from '../ops/parameter.js';
import type { RowSource } from '../ops/row-source.js';
import type { Table } from '../ops/table.js';
import type { Tape } from '../ops/tape.js';
import type { Tensor } from '../tensor/tensor.js';
import type { BatchTensors } from './batch-tensors.js';

/** Items by row, and the source of those rows. */
export interface ItemLookup {
  readonly rows: RowSource;
  readonly ids: Tensor<'i32'>; // [T]
}

export interface InputEmbeddingParts {
  readonly items: Table;
  /** Tables of actions and side features, in the order of a batch's side ids. */
  readonly sides: readonly Table[];
  readonly positions: Parameter;
  readonly dropout: number;
}

export class InputEmbedding {
  readonly #parts: InputEmbeddingParts;

  constructor(parts: InputEmbeddingParts) {
    this.#parts = parts;
  }

  /** [T, D]. `lookup`: the source of the item rows; default: the table. */
  forward(tape: Tape, batch: BatchTensors, lookup?: ItemLookup): Tensor<'f32'> {
    const { items, sides, positions, dropout } = this.#parts;
    const { rows, ids } = lookup ?? { rows: items, ids: batch.items };
    const input = { rows, ids, scale: Math.sqrt(items.value.cols) };
    const others = sides.map((table, i) => ({ rows: table, ids: batch.sideIds[i]! }));
    return embeddingGather(tape, [input, ...others], { positions, offsets: batch.tokens.offsets, dropout });
  }
}
