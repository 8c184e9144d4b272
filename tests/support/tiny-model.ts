// A small but complete training step written from the ops, for tests of what surrounds them: two HSTU blocks over item
// and action embeddings with positions, dropout, time bias, sampled softmax, clipping, AdamW and a table update.
//
// T tokens, B sequences, D width, h heads, V items, R negatives.

import type { Device } from '../../src/native/device.js';
import { adamw } from '../../src/ops/adamw.js';
import { clipScale } from '../../src/ops/clip-scale.js';
import { drawNegatives } from '../../src/ops/draw-negatives.js';
import { embeddingGather } from '../../src/ops/embedding-gather.js';
import { embeddingUpdate } from '../../src/ops/embedding-update.js';
import { fillConstant, fillNormal } from '../../src/ops/fill.js';
import { gatedNormLinearResidual } from '../../src/ops/gated-norm-linear-residual.js';
import { hstuAttention } from '../../src/ops/hstu-attention.js';
import { normLinear } from '../../src/ops/norm-linear.js';
import { Parameter } from '../../src/ops/parameter.js';
import { sampledSoftmax } from '../../src/ops/sampled-softmax.js';
import { squareSum } from '../../src/ops/square-sum.js';
import { Table } from '../../src/ops/table.js';
import { Tape } from '../../src/ops/tape.js';
import type { Tensor } from '../../src/tensor/tensor.js';
import { Random } from '../../src/util/random.js';
import { ZERO } from './exact-sum.js';

export const SIZE = { d: 24, heads: 2, items: 50, actions: 4, longest: 40, negatives: 8, blocks: 2 };

export interface TinyBatch {
  offsets: Int32Array;
  items: Int32Array;
  actions: Int32Array;
  targets: Int32Array;
  times: Float64Array;
  nextTimes: Float64Array;
}

/** Sequences of these lengths, with random content. */
export function tinyBatch(lengths: readonly number[], seed: number): TinyBatch {
  const random = new Random(seed, 'tiny batch');
  const offsets = Int32Array.of(0, ...lengths);
  for (let i = 1; i < offsets.length; i++) offsets[i]! += offsets[i - 1]!;
  const tokens = offsets.at(-1)!;
  const ids = (below: number): Int32Array => Int32Array.from({ length: tokens }, () => random.below(below));
  const times = Float64Array.from({ length: tokens }, () => 1_600_000_000 + random.below(1_000_000));
  const batch = { offsets, items: ids(SIZE.items), actions: ids(SIZE.actions), targets: ids(SIZE.items) };
  return { ...batch, times, nextTimes: times.map(t => t + random.below(100_000)) };
}

export class TinyModel {
  readonly device: Device;
  readonly items: Table<'f32'>;
  readonly actions: Table<'f32'>;
  readonly parameters: Parameter[] = [];
  readonly #positions: Parameter;
  readonly #blocks: Record<'w' | 'posW' | 'tsW' | 'wo' | 'bo', Parameter>[];
  readonly #moments = new Map<string, { m: Tensor<'f32'>; v: Tensor<'f32'> }>();
  readonly #norm: Tensor<'i64'>;
  readonly #scale: Tensor<'f32'>;
  readonly #seed: number;

  constructor(device: Device, seed: number) {
    this.device = device;
    this.#seed = seed;
    const { d, items, actions, longest, blocks } = SIZE;
    let purpose = 1000;
    const normal = (rows: number, cols: number): Tensor<'f32'> => {
      const tensor = device.tensor([rows, cols]);
      fillNormal(device, tensor, { seed, step: 0, purpose: purpose++ }, { std: 0.3 });
      return tensor;
    };
    const parameter = (name: string, rows: number, cols: number): Parameter => {
      const made = new Parameter(device, name, normal(rows, cols));
      this.parameters.push(made);
      return made;
    };
    this.items = new Table(device, 'items', normal(items, d));
    this.actions = new Table(device, 'actions', normal(actions, d));
    this.#positions = parameter('positions', longest, d);
    this.#blocks = Array.from({ length: blocks }, (_, block) => ({
      w: parameter(`${block}.w`, d, 4 * d),
      posW: parameter(`${block}.posW`, 1, 2 * longest - 1),
      tsW: parameter(`${block}.tsW`, 1, 129),
      wo: parameter(`${block}.wo`, d, d),
      bo: parameter(`${block}.bo`, 1, d),
    }));
    for (const { name, value } of [...this.parameters, this.items, this.actions]) {
      const zeros = (): Tensor<'f32'> => {
        const tensor = device.tensor(value.shape);
        fillConstant(device, tensor, 0);
        return tensor;
      };
      this.#moments.set(name, { m: zeros(), v: zeros() });
    }
    this.#norm = device.from(ZERO());
    this.#scale = device.tensor([1, 1]);
  }

  /** Forward, loss and, while training, gradients. The caller disposes of the tape and, after the update, of `inputs`. */
  forward(tape: Tape, batch: TinyBatch, dropout = 0.2): { loss: Tensor<'f32'>; inputs: Tensor[] } {
    const { device } = this;
    const { d, heads, longest, negatives: drawn } = SIZE;
    const offsets = device.from(batch.offsets);
    const [items, actions] = [device.from(batch.items), device.from(batch.actions)];
    const tokens = { offsets, times: device.from(batch.times), queryTimes: device.from(batch.nextTimes) };
    const positives = device.from(batch.targets);
    const negatives = device.tensor([batch.items.length, drawn], 'i32');
    drawNegatives(device, negatives, tape.random(), { kind: 'uniform', count: SIZE.items });
    const lookups = [
      { rows: this.items, ids: items, scale: Math.sqrt(d) },
      { rows: this.actions, ids: actions },
    ] as const;
    let x = embeddingGather(tape, [...lookups], { positions: this.#positions, offsets, dropout });
    for (const { w, posW, tsW, wo, bo } of this.#blocks) {
      const before = x;
      x = tape.scope(() => {
        const y = normLinear(tape, before, w, { norm: 'layer', act: 'silu' });
        const qkv = { v: y.columns(d, d), q: y.columns(2 * d, d), k: y.columns(3 * d, d) };
        const o = hstuAttention(tape, qkv, tokens, { heads, n: longest, posW, tsW });
        return gatedNormLinearResidual(tape, { u: y.columns(0, d), o, x: before }, wo, {
          norm: 'layer',
          dropout,
          bias: bo,
        });
      });
    }
    const logits = { temperature: 0.5, normalizeUser: true, normalizeItem: true };
    const loss = sampledSoftmax(tape, x, this.items, { positives, negatives, ...logits });
    return { loss, inputs: [items, actions, offsets, tokens.times, tokens.queryTimes, positives, negatives] };
  }

  /** One training step; the loss arrives when the stream gets there. */
  step(step: number, batch: TinyBatch): Promise<Float32Array> {
    const tape = new Tape(this.device, { training: true, seed: this.#seed, step });
    const { loss, inputs } = this.forward(tape, batch);
    const value = this.device.read(loss);
    tape.backward();
    this.#update(step);
    tape.dispose();
    for (const tensor of inputs) tensor.dispose();
    return value;
  }

  #update(step: number): void {
    const { device, items, actions } = this;
    const hyper = { lr: 1e-2, beta1: 0.9, beta2: 0.98, eps: 1e-8, weightDecay: 0.01, step };
    const contributed = (table: Table) => ({ source: table, contributions: table.rowGradient.contributions! });
    embeddingUpdate(device, items.value, contributed(items), { kind: 'dense', grad: items.gradTarget() });
    const dense = [...this.parameters, items];
    device.upload(this.#norm, ZERO());
    for (const { gradient } of dense) squareSum(device, gradient.value!, { to: this.#norm, accumulate: true });
    embeddingUpdate(device, actions.value, contributed(actions), { kind: 'square-sum', to: this.#norm });
    clipScale(device, { squareSum: this.#norm, maxNorm: 1, scale: this.#scale });
    const gradScale = this.#scale;
    for (const owner of dense) {
      adamw(device, { p: owner.value, g: owner.gradient.value!, ...this.#moments.get(owner.name)!, hyper, gradScale });
      owner.clearGrad();
    }
    const lazy = { kind: 'lazy-adam', ...this.#moments.get('actions')!, hyper } as const;
    embeddingUpdate(device, actions.value, contributed(actions), lazy, { gradScale });
    actions.clearGrad();
  }

  /** All weights in one array. */
  async weights(): Promise<Float32Array> {
    const owners = [...this.parameters, this.items, this.actions];
    const parts = await Promise.all(owners.map(owner => this.device.read(owner.value)));
    return Float32Array.from(parts.flatMap(part => [...part]));
  }
}
