// SASRec (Kang and McAuley, 2018): a causal softmax Transformer, pre-norm, with a ReLU feed-forward.
//
//   X = X + Dropout(softmax(Q K^T / sqrt(a)) V Wo + bo),  [Q|K|V] = LayerNorm(X) Wqkv + bqkv
//   X = X + Dropout(Dropout(ReLU(LayerNorm(X) W1 + b1)) W2 + b2);  a last LayerNorm after the blocks
//
// T tokens, D width, h heads, a = dqk, v = dv, L blocks, m inner width of the feed-forward.

import type { ModelConfig } from '../config/schema.js';
import { linearResidual } from '../ops/linear-residual.js';
import { norm } from '../ops/norm.js';
import { normLinear } from '../ops/norm-linear.js';
import { softmaxAttention } from '../ops/softmax-attention.js';
import type { ForwardInput, ModelDefinition } from './definition.js';
import { constant, countParameters, matrix, type ParameterSpec, vector, xavierUniform } from './parameter-spec.js';

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
  const matrices = countParameters(parameters.filter(spec => spec.rows > 1));

  return {
    kind: 'sasrec',
    d,
    maxLength,
    parameters,
    forward({ tape, x, tokens, weights }: ForwardInput) {
      const normed = (name: string, value: typeof x) =>
        norm(tape, value, { norm: 'layer', gain: weights(`${name}.gain`), shift: weights(`${name}.shift`) });
      for (let l = 0; l < blocks; l++) {
        const block = `blocks.${l}`;
        const weight = (name: string) => weights(`${block}.${name}`);
        const before = x;
        x = tape.scope(() => {
          const input = normed(`${block}.norm1`, before); // [T, D]
          const y = normLinear(tape, input, weight('qkv'), { bias: weight('qkv_bias'), headWidths }); // [T, 2ha + hv]
          const qkv = { q: y.columns(0, ha), k: y.columns(ha, ha), v: y.columns(2 * ha, hv) };
          const o = softmaxAttention(tape, qkv, { offsets: tokens.offsets, heads, dropout: attentionDropout }); // [T, hv]
          const out = { bias: weight('out_bias'), dropOut: dropout };
          const attended = linearResidual(tape, { x: o, residual: before }, weight('out'), out); // [T, D]
          const inner = { act: 'relu', bias: weight('w1_bias') } as const;
          const hidden = normLinear(tape, normed(`${block}.norm2`, attended), weight('w1'), inner); // [T, m]
          const last = { bias: weight('w2_bias'), dropIn: dropout, dropOut: dropout };
          return linearResidual(tape, { x: hidden, residual: attended }, weight('w2'), last); // [T, D]
        });
      }
      return normed('norm', x);
    },
    flops: length => 6 * matrices * length + 3 * blocks * (ha + hv) * length * (length + 1),
  };
}
