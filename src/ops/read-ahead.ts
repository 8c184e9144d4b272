// Prefetches rows of a memory-mapped table, so that they are in memory when they are read. It affects no result and waits
// only for the ids.

import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';
import type { RowDtype } from './row-source.js';

/** `ids`: rows of the table, -1 for none. */
export function readAhead(
  device: Device,
  table: Tensor<RowDtype>,
  ids: readonly Tensor<'i32'>[],
  stream?: StreamName,
): void {
  for (const list of ids) device.call('read_ahead').tensor(table).tensor(list).submit(stream);
}
