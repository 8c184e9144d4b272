// x[T, D] = drop(sum over lookups of scale * E[id] + positions[i]), with i counted from the oldest event of each sequence.
// Row gradients are not materialised: each source receives contributions, see RowSource.
//
// T tokens, B sequences, D width, V rows of a table, P positions.

import type { Tensor } from '../tensor/tensor.js';
import type { Parameter } from './parameter.js';
import { expectShape, expectSize } from './shape-rule.js';
import type { RowSource } from './row-source.js';
import type { Tape } from './tape.js';

export interface Lookup {
  rows: RowSource; // [V, D]
  /** -1 adds no row. Must live until the gradient is reduced or applied. */
  ids: Tensor<'i32'>; // [T]
  scale?: number;
}

export interface GatherOptions {
  positions?: Parameter; // [P, D]
  /** Required with positions. */
  offsets?: Tensor<'i32'>; // [B + 1]
  dropout?: number;
}

export function embeddingGather(
  tape: Tape,
  lookups: readonly [Lookup, ...Lookup[]],
  options: GatherOptions = {},
): Tensor<'f32'> {
  const { positions, offsets } = options;
  const { device } = tape;
  const [tokens, width] = [lookups[0].ids.size, lookups[0].rows.value.cols];
  for (const { rows, ids } of lookups) {
    expectSize('embedding_gather', 'ids', ids, tokens);
    expectShape('embedding_gather', 'rows', rows.value, rows.value.rows, width);
  }
  if (positions) expectShape('embedding_gather', 'positions', positions.value, positions.value.rows, width);
  const dropout = tape.dropout(options.dropout ?? 0);
  const x = tape.output(tokens, width);
  for (const [index, { rows, ids, scale = 1 }] of lookups.entries()) {
    const last = index === lookups.length - 1;
    device
      .call('embedding_gather_forward')
      .tensor(rows.value)
      .tensor(ids)
      .number(scale)
      .tensor(last ? positions?.value : undefined)
      .tensor(last && positions ? offsets : undefined)
      .dropout(last ? dropout : undefined)
      .flag(index > 0)
      .tensor(x)
      .submit();
  }
  tape.record({
    outputs: [x],
    backward() {
      const dx = tape.own(tape.takeGrad(x));
      const dpositions = positions?.gradTarget();
      device
        .call('embedding_gather_backward')
        .dropout(dropout)
        .tensor(dx)
        .grad(dpositions)
        .tensor(positions ? offsets : undefined)
        .submit();
      for (const { rows, ids, scale = 1 } of lookups) rows.contribute({ ids, source: dx, scale });
    },
  });
  return x;
}
