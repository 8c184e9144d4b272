// HSTU (Zhai et al., "Actions speak louder than words", 2024): pointwise SiLU attention without softmax, gated by U.
//
//   [U|V|Q|K] = SiLU(LayerNorm(X) W)          O_i = sum over j <= i of SiLU(q_i . k_j + b_ij) / N * v_j
//   X' = Dropout(U * LayerNorm(O)) Wo + bo + X
//
// T tokens, D width, h heads, a = dqk, v = dv, L blocks, N = longest sequence + output slots.

import type { ModelConfig } from '../config/schema.js';
import { gatedNormLinearResidual } from '../ops/gated-norm-linear-residual.js';
import { hstuAttention } from '../ops/hstu-attention.js';
import { normLinear } from '../ops/norm-linear.js';
import { causalFlops, throughBlocks } from './blocks.js';
import type { ModelDefinition } from './definition.js';
import { matrix, normal, type ParameterSpec, uniform, vector, xavierUniform } from './parameter-spec.js';
import type { TimeBias } from './time-bias.js';

export function hstu(config: ModelConfig, time: TimeBias | undefined): ModelDefinition {
  const { d, heads, blocks, dropout, maxLength } = config;
  const ha = heads * config.dqk;
  const hv = heads * config.dv;
  const n = maxLength + config.outputSlots;
  const headWidths = [config.dqk, config.dv];

  const block = (l: number): ParameterSpec[] => [
    matrix(`blocks.${l}.uvqk`, [d, 2 * hv + 2 * ha], normal(0.02)),
    vector(`blocks.${l}.pos_w`, 2 * n - 1, normal(0.02)),
    ...(time ? [time.spec(l)] : []),
    matrix(`blocks.${l}.out`, [hv, d], xavierUniform(hv, d)),
    vector(`blocks.${l}.out_bias`, d, uniform(1 / Math.sqrt(hv))),
  ];
  const parameters = Array.from({ length: blocks }, (_, l) => block(l)).flat();

  return {
    kind: 'hstu',
    d,
    maxLength,
    parameters,
    forward: input =>
      throughBlocks(input, blocks, (before, weight, l) => {
        const { tape, tokens, weights } = input;
        const y = normLinear(tape, before, weight('uvqk'), { norm: 'layer', act: 'silu', headWidths }); // [T, 2hv + 2ha]
        const qkv = { v: y.columns(hv, hv), q: y.columns(2 * hv, ha), k: y.columns(2 * hv + ha, ha) };
        const bias = { posW: weight('pos_w'), ...time?.options(l, weights) };
        const o = hstuAttention(tape, qkv, tokens, { heads, n, ...bias }); // [T, hv]
        const gated = { u: y.columns(0, hv), o, x: before };
        const out = { norm: 'layer', dropout, bias: weight('out_bias') } as const;
        return gatedNormLinearResidual(tape, gated, weight('out'), out); // [T, D]
      }),
    flops: causalFlops(parameters, blocks, ha + hv),
  };
}
