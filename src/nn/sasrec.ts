// SASRec (Kang and McAuley, 2018): a causal softmax Transformer, pre-norm, with a ReLU feed-forward.
//
//   X = X + Dropout(softmax(Q K^T / sqrt(a)) V Wo + bo),  [Q|K|V] = LayerNorm(X) Wqkv + bqkv
//   X = X + Dropout(Dropout(ReLU(LayerNorm(X) W1 + b1)) W2 + b2);  a final LayerNorm after the blocks
//
// T tokens, D width, h heads, a = dqk, v = dv, L blocks, m inner width of the feed-forward.

import type { ModelConfig } from '../config/schema.js';
import { linearResidual } from '../ops/linear-residual.js';
import { norm } from '../ops/norm.js';
import { normLinear } from '../ops/norm-linear.js';
import { softmaxAttention } from '../ops/softmax-attention.js';
import { causalFlops, throughBlocks } from './blocks.js';
import type { ModelDefinition } from './definition.js';
import { constant, matrix, type ParameterSpec, vector, xavierUniform } from './parameter-spec.js';

export function sasrec(config: ModelConfig): ModelDefinition {
  const { d, heads, blocks, dropout, attentionDropout, maxLength } = config;
  const ha = heads * config.dqk;
  const hv = heads * config.dv;
  const m = Math.round(config.feedForward * d);
  const headWidths = [config.dqk, config.dv];

  const affine = (name: string): ParameterSpec[] => [
    vector(`${name}.gain`, d, constant(1)),
    vector(`${name}.shift`, d, constant(0)),
  ];
  const linear = (name: string, rows: number, cols: number): ParameterSpec[] => [
    matrix(name, [rows, cols], xavierUniform(rows, cols)),
    vector(`${name}_bias`, cols, constant(0)),
  ];
  const block = (l: number): ParameterSpec[] => [
    ...affine(`blocks.${l}.norm1`),
    ...linear(`blocks.${l}.qkv`, d, 2 * ha + hv),
    ...linear(`blocks.${l}.out`, hv, d),
    ...affine(`blocks.${l}.norm2`),
    ...linear(`blocks.${l}.w1`, d, m),
    ...linear(`blocks.${l}.w2`, m, d),
  ];
  const parameters = [...Array.from({ length: blocks }, (_, l) => block(l)).flat(), ...affine('norm')];

  return {
    kind: 'sasrec',
    d,
    maxLength,
    parameters,
    forward(input) {
      const { tape, tokens, weights } = input;
      const normed = (name: string, value: typeof input.x) =>
        norm(tape, value, { norm: 'layer', gain: weights(`${name}.gain`), shift: weights(`${name}.shift`) });
      const states = throughBlocks(input, blocks, (before, weight, l) => {
        const x = normed(`blocks.${l}.norm1`, before); // [T, D]
        const y = normLinear(tape, x, weight('qkv'), { bias: weight('qkv_bias'), headWidths }); // [T, 2ha + hv]
        const qkv = { q: y.columns(0, ha), k: y.columns(ha, ha), v: y.columns(2 * ha, hv) };
        const o = softmaxAttention(tape, qkv, { offsets: tokens.offsets, heads, dropout: attentionDropout }); // [T, hv]
        const out = { bias: weight('out_bias'), dropOut: dropout };
        const attended = linearResidual(tape, { x: o, residual: before }, weight('out'), out); // [T, D]
        const inner = { act: 'relu', bias: weight('w1_bias') } as const;
        const hidden = normLinear(tape, normed(`blocks.${l}.norm2`, attended), weight('w1'), inner); // [T, m]
        const last = { bias: weight('w2_bias'), dropIn: dropout, dropOut: dropout };
        return linearResidual(tape, { x: hidden, residual: attended }, weight('w2'), last); // [T, D]
      });
      return normed('norm', states);
    },
    flops: causalFlops(parameters, blocks, ha + hv),
  };
}
