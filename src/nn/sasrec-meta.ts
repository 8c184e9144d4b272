// SASRec as in Meta's public recipes, the variant behind the published results. Unlike the original, only the query is
// normalised, the normalised query is the residual, keys and values come from the raw input, and there is no final norm.
//
//   Q = LayerNorm(X);  A = Q + softmax(Q Wq (X Wk)^T / sqrt(a)) X Wv Wo + bo
//   H = LayerNorm(A);  X = H + Dropout(Dropout(ReLU(H W1 + b1)) W2 + b2)
//
// Norms without gain and shift. T tokens, D width, h heads, a = dqk, v = dv, L blocks, m inner width of the feed-forward.

import type { ModelConfig } from '../config/schema.js';
import { linearResidual } from '../ops/linear-residual.js';
import { norm } from '../ops/norm.js';
import { normLinear } from '../ops/norm-linear.js';
import { softmaxAttention } from '../ops/softmax-attention.js';
import { causalFlops, throughBlocks } from './blocks.js';
import type { ModelDefinition } from './definition.js';
import { constant, matrix, normal, type ParameterSpec, uniform, vector } from './parameter-spec.js';

const EPS = 1e-8;
const NORM = { norm: 'layer', eps: EPS } as const;

export function sasrecMeta(config: ModelConfig): ModelDefinition {
  const { d, heads, blocks, dropout, attentionDropout, maxLength } = config;
  const ha = heads * config.dqk;
  const hv = heads * config.dv;
  const m = Math.round(config.feedForward * d);

  const xavier = (rows: number, cols: number) => normal(Math.sqrt(2 / (rows + cols)));
  // The reference initialises queries, keys and values as one matrix.
  const projection = (name: string, cols: number): ParameterSpec[] => [
    matrix(name, [d, cols], xavier(d, 2 * ha + hv)),
    vector(`${name}_bias`, cols, constant(0)),
  ];
  const block = (l: number): ParameterSpec[] => [
    ...projection(`blocks.${l}.q`, ha),
    ...projection(`blocks.${l}.kv`, ha + hv),
    matrix(`blocks.${l}.out`, [hv, d], xavier(hv, d)),
    vector(`blocks.${l}.out_bias`, d, constant(0)),
    matrix(`blocks.${l}.w1`, [d, m], xavier(d, m)),
    vector(`blocks.${l}.w1_bias`, m, uniform(1 / Math.sqrt(d))),
    matrix(`blocks.${l}.w2`, [m, d], xavier(m, d)),
    vector(`blocks.${l}.w2_bias`, d, uniform(1 / Math.sqrt(m))),
  ];
  const parameters = Array.from({ length: blocks }, (_, l) => block(l)).flat();

  return {
    kind: 'sasrec',
    d,
    maxLength,
    parameters,
    forward: input =>
      throughBlocks(input, blocks, (before, weight) => {
        const { tape, tokens } = input;
        const query = norm(tape, before, NORM); // [T, D]
        const q = normLinear(tape, query, weight('q'), { bias: weight('q_bias') }); // [T, ha]
        const kv = normLinear(tape, before, weight('kv'), { bias: weight('kv_bias') }); // [T, ha + hv]
        const qkv = { q, k: kv.columns(0, ha), v: kv.columns(ha, hv) };
        const o = softmaxAttention(tape, qkv, { offsets: tokens.offsets, heads, dropout: attentionDropout }); // [T, hv]
        const attended = linearResidual(tape, { x: o, residual: query }, weight('out'), { bias: weight('out_bias') });
        const middle = norm(tape, attended, NORM); // [T, D]
        const hidden = normLinear(tape, middle, weight('w1'), { act: 'relu', bias: weight('w1_bias') }); // [T, m]
        const last = { bias: weight('w2_bias'), dropIn: dropout, dropOut: dropout };
        return linearResidual(tape, { x: hidden, residual: middle }, weight('w2'), last); // [T, D]
      }),
    flops: causalFlops(parameters, blocks, ha + hv),
  };
}
