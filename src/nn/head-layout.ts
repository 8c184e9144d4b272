// Where the columns of a block's input projection lie: each head's together, if that is possible.

import type { ModelConfig } from '../config/schema.js';
import type { Layout } from '../tensor/tensor.js';

/** The narrowest panel that tensors come in: a cache line. */
const LEAST = 16;

export function headLayout({ dqk, dv }: Pick<ModelConfig, 'dqk' | 'dv'>): Layout {
  const fits = dqk === dv && dqk >= LEAST && Number.isInteger(Math.log2(dqk));
  return fits ? { panel: dqk } : {};
}
