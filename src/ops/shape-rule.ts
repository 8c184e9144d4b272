// Shape rules fail at the call that breaks them, in the caller's own stack, before anything is enqueued.

import type { Tensor } from '../tensor/tensor.js';
import { TurboError } from '../tensor/turbo-error.js';

/** An input's shape must be this. */
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

/** An input that is read flat must have this many elements. */
export function expectSize(op: string, input: string, tensor: Tensor, size: number): void {
  if (tensor.size === size) return;
  throw new TurboError({ kind: 'shape', op, input, expected: `[${size}]`, got: `[${tensor.size}]` });
}
