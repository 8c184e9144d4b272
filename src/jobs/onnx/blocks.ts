// The encoders as ONNX: HSTU, FuXi-alpha and SASRec on one sequence, op by op as in src/nn.

import type { ModelConfig } from '../../config/schema.js';
import { UserError } from '../../util/errors.js';
import type { Graph, Value } from './graph.js';
import { joinHeads, normed, type Pairs, positionBias, scores, silu, splitHeads, timeBias } from './layers.js';

export interface BlockInput {
  g: Graph;
  config: ModelConfig;
  pairs: Pairs;
  /** Units of the log's timestamps per day. */
  ticksPerDay: number | undefined;
  /** Adds a parameter to the graph. */
  weight: (name: string) => Value;
  values: (name: string) => Float32Array;
}

type Encoder = (x: Value, input: BlockInput) => Value;

/** [n, D] states of [n, D] embedded events. */
export function encoderBlocks(kind: string): Encoder {
  if (kind === 'hstu') return hstu;
  if (kind === 'fuxi') return fuxi;
  if (kind === 'sasrec') return sasrec;
  throw new UserError(
    'own-model',
    `a custom model, "${kind}", cannot be exported to ONNX`,
    'Export the weights instead: --out <file>.',
  );
}

function hstu(x: Value, input: BlockInput): Value {
  const { g, config } = input;
  const { heads, blocks, dqk, dv } = config;
  const [ha, hv, n] = [heads * dqk, heads * dv, config.maxLength + config.outputSlots];
  for (let l = 0; l < blocks; l++) {
    const weight = (name: string): Value => input.weight(`blocks.${l}.${name}`);
    const y = silu(g, g.op('MatMul', [normed(g, x, 'layer'), weight('uvqk')])); // [n, 2hv + 2ha]
    const v = splitHeads(g, g.columns(y, hv, hv), heads);
    const score = scores(g, g.columns(y, 2 * hv, ha), g.columns(y, 2 * hv + ha, ha), heads);
    const { position, time } = bias(input, l, n);
    const biased = g.op('Add', [score, time ? g.op('Add', [position, time]) : position]);
    const o = joinHeads(g, g.op('MatMul', [masked(g, input, pointwise(g, biased, n)), v])); // [n, hv]
    const gated = g.op('Mul', [g.columns(y, 0, hv), normed(g, o, 'layer')]);
    x = g.op('Add', [g.op('Add', [g.op('MatMul', [gated, weight('out')]), weight('out_bias')]), x]);
  }
  return x;
}

function fuxi(x: Value, input: BlockInput): Value {
  const { g, config } = input;
  const { heads, blocks, dqk, dv } = config;
  const [ha, hv, n] = [heads * dqk, heads * dv, config.maxLength + config.outputSlots];
  const m = Math.round(config.feedForward * config.d);
  for (let l = 0; l < blocks; l++) {
    const weight = (name: string): Value => input.weight(`blocks.${l}.${name}`);
    const y = silu(g, g.op('MatMul', [normed(g, x, 'rms'), weight('uvqk')])); // [n, 4hv + 2ha]
    const v = splitHeads(g, g.columns(y, 3 * hv, hv), heads); // [h, n, v]
    const score = scores(g, g.columns(y, 4 * hv, ha), g.columns(y, 4 * hv + ha, ha), heads);
    const { position, time } = bias(input, l, n);
    const channel = (weights: Value): Value => g.op('MatMul', [masked(g, input, weights), v]);
    const byPosition = channel(position);
    // Without times the channel exists and is zero.
    const byTime = time ? channel(time) : g.op('Mul', [byPosition, g.float(0)]);
    const bySemantics = channel(pointwise(g, score, n));
    const o = joinHeads(g, g.op('Concat', [byPosition, byTime, bySemantics], { axis: 2 })); // [n, 3hv]
    const gated = g.op('Mul', [g.columns(y, 0, 3 * hv), normed(g, o, 'rms')]);
    const attended = g.op('Add', [g.op('Add', [g.op('MatMul', [gated, weight('out')]), weight('out_bias')]), x]);
    const h = g.op('MatMul', [normed(g, attended, 'rms'), weight('w13')]); // [n, 2m]
    const inner = g.op('Mul', [silu(g, g.columns(h, 0, m)), g.columns(h, m, m)]);
    x = g.op('Add', [g.op('MatMul', [inner, weight('w2')]), attended]);
  }
  return x;
}

function sasrec(x: Value, input: BlockInput): Value {
  const { g, config, weight } = input;
  const { heads, blocks, dqk, dv } = config;
  const [ha, hv] = [heads * dqk, heads * dv];
  const affine = (name: string, value: Value): Value =>
    g.op('Add', [g.op('Mul', [normed(g, value, 'layer'), weight(`${name}.gain`)]), weight(`${name}.shift`)]);
  const linear = (name: string, value: Value): Value =>
    g.op('Add', [g.op('MatMul', [value, weight(name)]), weight(`${name}_bias`)]);
  const hidden = g.op('Mul', [g.op('Sub', [input.pairs.visible, g.float(1)]), g.float(1e30)]); // 0, or -1e30
  for (let l = 0; l < blocks; l++) {
    const block = `blocks.${l}`;
    const y = linear(`${block}.qkv`, affine(`${block}.norm1`, x)); // [n, 2ha + hv]
    const score = scores(g, g.columns(y, 0, ha), g.columns(y, ha, ha), heads);
    const scaled = g.op('Add', [g.op('Mul', [score, g.float(1 / Math.sqrt(dqk))]), hidden]);
    const weights = g.op('Softmax', [scaled], { axis: -1 });
    const o = joinHeads(g, g.op('MatMul', [weights, splitHeads(g, g.columns(y, 2 * ha, hv), heads)]));
    const attended = g.op('Add', [linear(`${block}.out`, o), x]);
    const inner = g.op('Relu', [linear(`${block}.w1`, affine(`${block}.norm2`, attended))]);
    x = g.op('Add', [linear(`${block}.w2`, inner), attended]);
  }
  return affine('norm', x);
}

/** SiLU(s) / N: attention weights without softmax. */
function pointwise(g: Graph, score: Value, n: number): Value {
  return g.op('Mul', [silu(g, score), g.float(1 / n)]);
}

function masked(g: Graph, { pairs }: BlockInput, weights: Value): Value {
  return g.op('Mul', [weights, pairs.visible]);
}

function bias(input: BlockInput, l: number, n: number): { position: Value; time: Value | undefined } {
  const { g, config, pairs, ticksPerDay } = input;
  const flat = (name: string): Value => g.op('Reshape', [input.weight(`blocks.${l}.${name}`), g.ints([-1])]);
  const position = positionBias(g, flat('pos_w'), n, pairs);
  if (!pairs.gap) return { position, time: undefined };
  const unit = config.timeBias === 'power' ? ticksPerDay : undefined;
  const values = input.values(`blocks.${l}.ts_w`);
  return { position, time: timeBias(g, pairs.gap, { weights: flat('ts_w'), values, unit }) };
}
