// FuXi-alpha (Ye et al., 2025): three attention channels that share V (position, time, semantic), gated by U, then a
// SwiGLU feed-forward.
//
//   [U|V|Q|K] = SiLU(RMSNorm(X) W)            O = per head [A_pos V | A_ts V | A_sem V]
//   o = Dropout(U * RMSNorm(O)) W0 + b0 + X   X' = (SiLU(z W1) * (z W3)) W2 + o,  z = Dropout(RMSNorm(o))
//
// T tokens, D width, h heads, a = dqk, v = dv, L blocks, m inner width of the feed-forward, N as in hstu.ts.

import type { ModelConfig } from '../config/schema.js';
import { fuxiAttention } from '../ops/fuxi-attention.js';
import { gatedNormLinearResidual } from '../ops/gated-norm-linear-residual.js';
import { normLinear } from '../ops/norm-linear.js';
import { swigluLinearResidual } from '../ops/swiglu-linear-residual.js';
import { causalFlops, throughBlocks } from './blocks.js';
import type { ModelDefinition } from './definition.js';
import { matrix, normal, type ParameterSpec, uniform, vector, xavierUniform } from './parameter-spec.js';
import type { TimeBias } from './time-bias.js';

export function fuxi(config: ModelConfig, time: TimeBias | undefined): ModelDefinition {
  const { d, heads, blocks, dropout, maxLength } = config;
  const ha = heads * config.dqk;
  const hv = heads * config.dv;
  const m = Math.round(config.feedForward * d);
  const n = maxLength + config.outputSlots;
  const headWidths = [config.dqk, config.dv];

  const block = (l: number): ParameterSpec[] => [
    matrix(`blocks.${l}.uvqk`, [d, 4 * hv + 2 * ha], normal(0.02)),
    vector(`blocks.${l}.pos_w`, 2 * n - 1, normal(0.02)),
    ...(time ? [time.spec(l)] : []),
    matrix(`blocks.${l}.out`, [3 * hv, d], xavierUniform(3 * hv, d)),
    vector(`blocks.${l}.out_bias`, d, uniform(1 / Math.sqrt(3 * hv))),
    matrix(`blocks.${l}.w13`, [d, 2 * m], xavierUniform(d, m)),
    matrix(`blocks.${l}.w2`, [m, d], xavierUniform(m, d)),
  ];
  const parameters = Array.from({ length: blocks }, (_, l) => block(l)).flat();

  return {
    kind: 'fuxi',
    d,
    maxLength,
    parameters,
    forward: input =>
      throughBlocks(input, blocks, (before, weight, l) => {
        const { tape, tokens, weights } = input;
        const y = normLinear(tape, before, weight('uvqk'), { norm: 'rms', act: 'silu', headWidths }); // [T, 4hv + 2ha]
        const qkv = { v: y.columns(3 * hv, hv), q: y.columns(4 * hv, ha), k: y.columns(4 * hv + ha, ha) };
        const bias = { posW: weight('pos_w'), ...time?.options(l, weights) };
        const o = fuxiAttention(tape, qkv, tokens, { heads, n, ...bias }); // [T, 3hv]
        const gated = { u: y.columns(0, 3 * hv), o, x: before };
        const out = { norm: 'rms', dropout, bias: weight('out_bias') } as const;
        const attended = gatedNormLinearResidual(tape, gated, weight('out'), out); // [T, D]
        const h = normLinear(tape, attended, weight('w13'), { norm: 'rms', dropout }); // [T, 2m]
        return swigluLinearResidual(tape, { h, x: attended }, weight('w2')); // [T, D]
      }),
    flops: causalFlops(parameters, blocks, ha + 3 * hv),
  };
}
