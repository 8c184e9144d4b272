// Iterates over all rows of a sharded table in order, one block at a time, on every rank of the group. No rank holds more
// than one block besides its own rows.
//
// V rows of the table, D width.

import type { Device } from '../../native/device.js';
import { copyRows } from '../../ops/copy-rows.js';
import type { RowDtype } from '../../ops/row-source.js';
import type { Tensor } from '../../tensor/tensor.js';
import { ownedRows } from '../../util/row-shard.js';
import type { Communicator } from '../comm/communicator.js';

/** Floats of a block on each rank: 4 MB. */
const BLOCK_FLOATS = 1 << 20;

/** Collective over the group. Blocks are [rows, D]. */
export async function* wholeRows(
  device: Device,
  group: Communicator,
  { value, rows }: { value: Tensor<RowDtype>; rows: number },
): AsyncGenerator<Float32Array> {
  const width = value.cols;
  const perBlock = Math.max(1, Math.floor(BLOCK_FLOATS / width));
  const most = ownedRows(rows, { index: 0, count: group.size });
  for (let first = 0; first < most; first += perBlock) {
    const own = await readBlock(device, value, first, Math.min(perBlock, value.rows - first));
    const parts = await group.gather(new Uint8Array(own.buffer, own.byteOffset, own.byteLength));
    const shards = parts.map(bytes => new Float32Array(bytes.slice().buffer));
    const count = shards.reduce((sum, shard) => sum + shard.length, 0) / width;
    const block = new Float32Array(count * width);
    for (let row = 0; row < count; row++) {
      const from = Math.floor(row / group.size) * width;
      block.set(shards[row % group.size]!.subarray(from, from + width), row * width);
    }
    yield block;
  }
}

async function readBlock(device: Device, rows: Tensor<RowDtype>, from: number, count: number): Promise<Float32Array> {
  if (count <= 0) return new Float32Array(0);
  using to = device.tensor([count, rows.cols]);
  copyRows(device, { rows, from, to, at: 0, count });
  return await device.read(to);
}
