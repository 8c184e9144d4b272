// HSTU attention, per head: o_i = sum over j <= i of SiLU(q_i . k_j + b_ij) / n * v_j, with the relative bias
// b_ij = posW[j - i + n - 1] + tsW[bucket(queryTimes_i - times_j)] computed inside the kernel. Nothing quadratic is stored.

import type { Tensor } from '../tensor/tensor.js';
import { type JaggedTokens, type Qkv, type RelativeOptions, relativeAttention } from './relative-attention.js';
import type { Tape } from './tape.js';

/** [T, h*v] */
export function hstuAttention(tape: Tape, qkv: Qkv, tokens: JaggedTokens, options: RelativeOptions): Tensor<'f32'> {
  return relativeAttention(tape, { op: 'hstu_attention', channels: 1, qkv, tokens, options });
}
