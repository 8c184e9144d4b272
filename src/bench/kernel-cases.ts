// The kernels that `turbogr bench kernels` measures, each with its operands and the work it does.
//
// T tokens, n_s length of a sequence, D width, h heads, R negatives, V items, Q queries. FLOPs are useful ones: causal
// pairs only, no recomputation. Bytes are the minimum traffic: each operand moved once.

import { Device } from '../native/device.js';
import { SECONDS_PER_DAY } from '../nn/time-bias.js';
import { adamw } from '../ops/adamw.js';
import { drawNegatives } from '../ops/draw-negatives.js';
import { embeddingGather } from '../ops/embedding-gather.js';
import { embeddingUpdate } from '../ops/embedding-update.js';
import { fillConstant, fillNormal } from '../ops/fill.js';
import { fullSoftmax } from '../ops/full-softmax.js';
import { fuxiAttention } from '../ops/fuxi-attention.js';
import { gatedNormLinearResidual } from '../ops/gated-norm-linear-residual.js';
import { hstuAttention } from '../ops/hstu-attention.js';
import { linearResidual } from '../ops/linear-residual.js';
import { norm } from '../ops/norm.js';
import { headLayout, normLinear } from '../ops/norm-linear.js';
import { Parameter } from '../ops/parameter.js';
import { sampledSoftmax } from '../ops/sampled-softmax.js';
import { softmaxAttention } from '../ops/softmax-attention.js';
import { swigluLinearResidual } from '../ops/swiglu-linear-residual.js';
import { Table } from '../ops/table.js';
import { Tape } from '../ops/tape.js';
import { topK } from '../ops/top-k.js';
import type { Tensor } from '../tensor/tensor.js';
import { drawBatch, drawLengths } from './random-batch.js';

export interface Work {
  flops?: number;
  bytes?: number;
}

/** A kernel on the tape: `build` enqueues forward, the tape backward, including gradients of `inputs`. */
export interface TapeCase {
  op: string;
  forward: Work;
  inputs: Tensor<'f32'>[];
  build: (tape: Tape) => Tensor<'f32'>;
}

/** A kernel without backward. */
export interface PlainCase {
  op: string;
  work: Work;
  run: () => void;
}

export interface Cases {
  tapeCases: TapeCase[];
  plainCases: PlainCase[];
}

export interface KernelSize {
  d: number;
  heads: number;
  tokens: number;
}

const [NEGATIVES, ITEMS, SMALL_CATALOGUE, QUERIES, PARAMETERS] = [128, 100_000, 4000, 1024, 16 << 20];

/** Created on first use. */
function once<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => (made ??= make());
}

export async function kernelCases(device: Device, { d, heads, tokens }: KernelSize): Promise<Cases> {
  const lengths = drawLengths(tokens);
  const batch = drawBatch(lengths, ITEMS);
  const pairs = lengths.reduce((sum, n) => sum + (n * (n + 1)) / 2, 0);
  const n = Math.max(...lengths);
  let purpose = 0;
  const random = (rows: number, cols: number, std = 0.05): Tensor<'f32'> => {
    const tensor = device.tensor([rows, cols]);
    fillNormal(device, tensor, { seed: 1, step: 0, purpose: purpose++ }, { std });
    return tensor;
  };
  const parameter = (rows: number, cols: number): Parameter => new Parameter(device, 'p', random(rows, cols));
  const x = random(tokens, d, 1);
  const o = random(tokens, d, 1);
  const wide = random(tokens, 4 * d, 0.3);
  const inner = wide.columns(0, 2 * d);
  // As in the models.
  const headWidths = [d / heads];
  const uvqk = device.tensor(wide.shape, 'f32', headLayout(headWidths));
  device.upload(uvqk, await device.read(wide));
  const [w4, w1, w3, bias] = [parameter(d, 4 * d), parameter(d, d), parameter(3 * d, d), parameter(1, d)];
  const qkv = { v: uvqk.columns(d, d), q: uvqk.columns(2 * d, d), k: uvqk.columns(3 * d, d) };
  const offsets = device.from(batch.offsets);
  const sequences = { offsets, times: device.from(batch.time), queryTimes: device.from(batch.nextTime) };
  const power = parameter(1, 3);
  const relative = { heads, n, posW: parameter(1, 2 * n - 1), tsW: parameter(1, 129) };
  const items = once(() => new Table(device, 'items', random(ITEMS, d)));
  const few = once(() => new Table(device, 'few', random(SMALL_CATALOGUE, d)));
  const [ids, positives] = [device.from(batch.item), device.from(batch.target)];
  const fewPositives = device.from(batch.target.map(id => id % SMALL_CATALOGUE));
  const negatives = device.tensor([tokens, NEGATIVES], 'i32');
  const uniform = { kind: 'uniform', count: ITEMS } as const;
  drawNegatives(device, negatives, { seed: 1, step: 0, purpose: 0 }, uniform);
  const ones = (rows: number, cols: number): Tensor<'f32'> => {
    const tensor = device.tensor([rows, cols]);
    fillConstant(device, tensor, 1);
    return tensor;
  };
  const moments = once(() => ({ m: ones(ITEMS, d), v: ones(ITEMS, d) }));
  const dense = once(() => {
    const [p, g, m, v] = [ones(1, PARAMETERS), ones(1, PARAMETERS), ones(1, PARAMETERS), ones(1, PARAMETERS)];
    return { p, g, m, v };
  });
  const hyper = { lr: 1e-3, beta1: 0.9, beta2: 0.98, eps: 1e-8, weightDecay: 0, step: 1 };
  const logits = { temperature: 0.05, normalizeUser: true, normalizeItem: true };
  const queries = random(QUERIES, d);
  const withTape =
    (work: (tape: Tape) => void): (() => void) =>
    () => {
      using tape = new Tape(device, { training: false });
      work(tape);
    };
  const product = (from: number, to: number): Work => ({ flops: 2 * tokens * from * to });
  const attention = (channels: number): Work => ({ flops: 2 * (1 + channels) * d * pairs });
  const gated = { norm: 'layer', bias, dropout: 0.2 } as const;
  const inputs = [x, o, wide, uvqk];
  const drawn = tokens * (1 + NEGATIVES);

  return {
    tapeCases: [
      {
        op: 'norm_linear',
        inputs,
        forward: product(d, 4 * d),
        build: tape => normLinear(tape, x, w4, { norm: 'layer', act: 'silu', headWidths }),
      },
      {
        op: 'gated_norm_linear_residual',
        inputs,
        forward: product(d, d),
        build: tape => gatedNormLinearResidual(tape, { u: uvqk.columns(0, d), o, x }, w1, gated),
      },
      {
        op: 'swiglu_linear_residual',
        inputs,
        forward: product(d, d),
        build: tape => swigluLinearResidual(tape, { h: inner, x }, w1),
      },
      {
        op: 'linear_residual',
        inputs,
        forward: product(3 * d, d),
        build: tape => linearResidual(tape, { x: wide.columns(0, 3 * d), residual: x }, w3, { bias }),
      },
      {
        op: 'hstu_attention',
        inputs,
        forward: attention(1),
        build: tape => hstuAttention(tape, qkv, sequences, relative),
      },
      {
        op: 'fuxi_attention',
        inputs,
        forward: attention(3),
        build: tape => fuxiAttention(tape, qkv, sequences, relative),
      },
      {
        op: 'fuxi_attention_power',
        inputs,
        forward: attention(3),
        build: tape => fuxiAttention(tape, qkv, sequences, { ...relative, tsW: power, timeUnit: SECONDS_PER_DAY }),
      },
      {
        op: 'softmax_attention',
        inputs,
        forward: attention(1),
        build: tape => softmaxAttention(tape, qkv, { offsets, heads }),
      },
      { op: 'norm', inputs, forward: { bytes: 8 * tokens * d }, build: tape => norm(tape, x, { norm: 'layer' }) },
    ],
    plainCases: [
      {
        op: 'embedding_gather',
        work: { bytes: 8 * tokens * d },
        run: withTape(tape => embeddingGather(tape, [{ rows: items(), ids, scale: 2 }])),
      },
      {
        op: `sampled_softmax R=${NEGATIVES}`,
        work: { bytes: 4 * drawn * d },
        run: withTape(tape => sampledSoftmax(tape, x, items(), { positives, negatives, ...logits })),
      },
      {
        op: `full_softmax V=${SMALL_CATALOGUE}`,
        work: { flops: 6 * tokens * SMALL_CATALOGUE * d },
        run: withTape(tape => fullSoftmax(tape, x, few(), { positives: fewPositives, ...logits })),
      },
      {
        op: 'embedding_update lazy Adam',
        // Every touched row and its moments are read and written; the summands come from cache.
        work: { bytes: 24 * d * new Set(batch.item).size },
        run: () => {
          const gradient = { source: items(), contributions: [{ ids, source: x, scale: 1 }] };
          embeddingUpdate(device, items().value, gradient, { kind: 'lazy-adam', ...moments(), hyper });
        },
      },
      { op: 'adamw', work: { bytes: 28 * PARAMETERS }, run: () => adamw(device, { ...dense(), hyper }) },
      {
        op: 'draw_negatives',
        work: { bytes: 4 * tokens * NEGATIVES },
        run: () => drawNegatives(device, negatives, { seed: 1, step: 0, purpose: 0 }, uniform),
      },
      {
        op: `top_k Q=${QUERIES} V=${ITEMS}`,
        work: { flops: 2 * QUERIES * ITEMS * d },
        run: () => {
          const found = topK(device, queries, items().value, { k: 100 });
          found.ids.dispose();
          found.scores.dispose();
        },
      },
    ],
  };
}
