// x[T, D] = drop(sum over lookups of scale * E[id] + positions[i]), i counting inside each sequence from the oldest event.
// The tables' gradients are not formed: each table is told what contributes to it, see Table.
//
// T tokens, B sequences, D width, V rows of a table, P positions.

import type { Tensor } from '../tensor/tensor.js';
import type { Parameter } from './parameter.js';
import { expectShape, expectSize } from './shape-rule.js';
import type { Table } from './table.js';
import type { Tape } from './tape.js';

export interface Lookup {
  table: Table; // [V, D]
  /** -1 adds no row. Must live until the table's update is enqueued. */
  ids: Tensor<'i32'>; // [T]
  scale?: number;
}

export interface GatherOptions {
  positions?: Parameter; // [P, D]
  /** With positions. */
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
  const [tokens, width] = [lookups[0].ids.size, lookups[0].table.value.cols];
  for (const { table, ids } of lookups) {
    expectSize('embedding_gather', 'ids', ids, tokens);
    expectShape('embedding_gather', 'table', table.value, table.value.rows, width);
  }
  if (positions) expectShape('embedding_gather', 'positions', positions.value, positions.value.rows, width);
  const dropout = tape.dropout(options.dropout ?? 0);
  const x = tape.output(tokens, width);
  for (const [index, { table, ids, scale = 1 }] of lookups.entries()) {
    const last = index === lookups.length - 1;
    device
      .call('embedding_gather_forward')
      .tensor(table.value)
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
      const dx = tape.takeGrad(x);
      const dpositions = positions?.gradTarget();
      device
        .call('embedding_gather_backward')
        .dropout(dropout)
        .tensor(dx)
        .grad(dpositions)
        .tensor(positions ? offsets : undefined)
        .submit();
      let holders = lookups.length;
      const release = (): void => {
        if (--holders === 0) dx.dispose();
      };
      for (const { table, ids, scale = 1 } of lookups) table.contribute({ ids, source: dx, scale, release });
    },
  });
  return x;
}
