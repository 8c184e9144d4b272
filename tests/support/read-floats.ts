// All rows of a tensor at once, as f32.
import type { Device } from '../../src/native/device.js';
import { readRows } from '../../src/ops/copy-rows.js';
import type { RowDtype } from '../../src/ops/row-source.js';
import type { Tensor } from '../../src/tensor/tensor.js';

export async function readFloats(device: Device, rows: Tensor<RowDtype>): Promise<Float32Array> {
  const to = new Float32Array(rows.size);
  let at = 0;
  for await (const piece of readRows(device, rows)) {
    to.set(piece, at);
    at += piece.length;
  }
  return to;
}
