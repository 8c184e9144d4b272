// Shape rules fail at the offending call, in the caller's stack, before anything is enqueued.

import type { Tensor } from '../tensor/tensor.js';
import { TurboError } from '../tensor/turbo-error.js';

/** Requires an input's shape. */
export function expectShape(op: string, input: string, tensor: Tensor, rows: number, cols: number): void {
  if (tensor.rows === rows && tensor.cols === cols) return;
  throw new TurboError({
    kind: 'shape',
    op,
    input,
    expected: `[${rows}, ${cols}]`,
    got: `[${tensor.rows}, ${tensor.cols}]`,
  });
}

/** Requires the number of elements of an input that is read flat. */
export function expectSize(op: string, input: string, tensor: Tensor, size: number): void {
  if (tensor.size === size) return;
  throw new TurboError({ kind: 'shape', op, input, expected: `[${size}]`, got: `[${tensor.size}]` });
}
