// Where the columns of a block's input projection lie: as attention reads them, if its heads are whole panels.

import type { ModelConfig } from '../config/schema.js';
import type { Layout } from '../tensor/tensor.js';

/** Columns of a panel, see `Layout`. */
const PANEL = 16;

export function headLayout({ dqk, dv }: Pick<ModelConfig, 'dqk' | 'dv'>): Layout {
  return dqk % PANEL === 0 && dv % PANEL === 0 ? 'panels' : 'rows';
}
