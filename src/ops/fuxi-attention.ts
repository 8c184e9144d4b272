// FuXi-alpha attention: three weightings of the same values, per head [A_pos V | A_ts V | A_sem V], with
// A_pos_ij = posW[j - i + n - 1] and A_ts_ij = tsW[bucket] raw, A_sem_ij = SiLU(q_i . k_j) / n, all causal.
// A channel whose table or times are absent is zero.

import type { Tensor } from '../tensor/tensor.js';
import { type JaggedTokens, type Qkv, type RelativeOptions, relativeAttention } from './relative-attention.js';
import type { Tape } from './tape.js';

/** [T, h*3*v] */
export function fuxiAttention(tape: Tape, qkv: Qkv, tokens: JaggedTokens, options: RelativeOptions): Tensor<'f32'> {
  return relativeAttention(tape, { op: 'fuxi_attention', channels: 3, qkv, tokens, options });
}
