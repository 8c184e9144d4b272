// Copies of the distinct table rows that a batch reads, in f32 or FP16: a row source that ops address by position. The copies
// come from the table, or on several ranks from the rows' owners.
//
// V rows of the table, U maximum distinct rows of the batch, D width.

import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';
import { RowGradient } from './row-gradient.js';
import type { Contribution, RowDtype, RowSource } from './row-source.js';

export interface UniqueIds {
  /** Ascending, padded with -1. */
  readonly ids: Tensor<'i32'>; // [U]
  /** For each list, its ids as positions in `ids`; -1 stays -1. */
  readonly places: readonly Tensor<'i32'>[];
}

export interface IdLists {
  readonly of: readonly Tensor<'i32'>[];
  readonly also?: readonly Tensor<'i32'>[];
  /** Destinations of the positions; default: new tensors. */
  readonly into?: readonly Tensor<'i32'>[];
}

/** The distinct ids of several lists, and the positions of those of `also` among them. The caller owns the tensors. */
export function uniqueIds(
  device: Device,
  { of, also = [], into }: IdLists,
  vocabulary: number,
  stream?: StreamName,
): UniqueIds {
  const lists = [...of, ...also];
  const entries = of.reduce((sum, list) => sum + list.size, 0);
  const ids = device.tensor([1, Math.min(entries, vocabulary)], 'i32');
  const places = into ?? lists.map(list => device.tensor(list.shape, 'i32'));
  const call = device.call('unique_ids').number(vocabulary).number(lists.length);
  lists.forEach((list, i) => call.tensor(list).tensor(places[i]));
  call.tensor(ids).submit(stream);
  return { ids, places };
}

/** [U, W] copies of rows `ids` of a [V, W] tensor, up to the last id. The caller owns them. */
export function stageRows<D extends RowDtype>(
  device: Device,
  { from, ids, dtype }: { from: Tensor<RowDtype>; ids: Tensor<'i32'>; dtype: D },
  stream?: StreamName,
): Tensor<D> {
  const to = device.tensor([ids.size, from.cols], dtype);
  device.call('stage_rows').tensor(from).tensor(ids).tensor(to).submit(stream);
  return to;
}

export interface StagedRowsOptions {
  /** Data type of the copy; default: the table's. */
  dtype?: RowDtype;
  /** The copies, if they were received from the rows' owners. */
  rows?: Tensor<RowDtype>;
  stream?: StreamName;
}

export class StagedRows implements RowSource {
  readonly name: string;
  readonly value: Tensor<RowDtype>;
  readonly ids: Tensor<'i32'>;
  readonly vocabulary: number;
  readonly rowGradient: RowGradient;

  /** Copies rows `ids` of `table`, unless copies are given; takes ownership of ids and rows. */
  constructor(
    device: Device,
    table: { name: string; value: Tensor<RowDtype>; vocabulary: number },
    ids: Tensor<'i32'>,
    options: StagedRowsOptions = {},
  ) {
    this.name = table.name;
    this.ids = ids;
    this.vocabulary = table.vocabulary;
    const dtype = options.dtype ?? table.value.dtype;
    this.value = options.rows ?? stageRows(device, { from: table.value, ids, dtype }, options.stream);
    this.rowGradient = new RowGradient(device, this);
  }

  contribute(contribution: Contribution): void {
    this.rowGradient.add(contribution);
  }

  dispose(): void {
    this.rowGradient.clear();
    this.value.dispose();
    this.ids.dispose();
  }
}
