// Causal softmax attention, per head: o_i = sum over j <= i of drop(softmax_j(scale * q_i . k_j)) v_j.
//
// T tokens, B sequences, h heads, a query/key width of a head, v value width of a head.

import type { Call } from '../native/call.js';
import type { Tensor } from '../tensor/tensor.js';
import type { Qkv } from './relative-attention.js';
import { expectShape } from './shape-rule.js';
import type { Tape } from './tape.js';

export interface SoftmaxAttentionOptions {
  offsets: Tensor<'i32'>; // [B + 1]
  heads: number;
  /** Default 1 / sqrt(a). */
  scale?: number;
  /** Drop probability of the weights. */
  dropout?: number;
}

/** [T, h*v] */
export function softmaxAttention(tape: Tape, { q, k, v }: Qkv, options: SoftmaxAttentionOptions): Tensor<'f32'> {
  const { heads, scale = 1 / Math.sqrt(q.cols / heads) } = options;
  const { device } = tape;
  expectShape('softmax_attention', 'k', k, q.rows, q.cols);
  expectShape('softmax_attention', 'v', v, q.rows, v.cols);
  const dropout = tape.dropout(options.dropout ?? 0);
  const inputs = (call: Call): Call =>
    call.tensor(q).tensor(k).tensor(v).number(heads).tensor(options.offsets).number(scale).dropout(dropout);
  const o = tape.output(v.rows, v.cols);
  const lse = device.tensor([v.rows, heads]);
  inputs(device.call('softmax_attention_forward')).tensor(o).tensor(lse).submit();
  tape.record({
    outputs: [o],
    saved: [lse],
    backward() {
      const dO = tape.grad(o);
      const [dq, dk, dv] = [tape.someTarget(q), tape.someTarget(k), tape.someTarget(v)];
      inputs(device.call('softmax_attention_backward'))
        .tensor(o)
        .tensor(lse)
        .tensor(dO)
        .grad(dq)
        .grad(dk)
        .grad(dv)
        .submit();
    },
  });
  return o;
}
