// Baseline for the fused kernel: HSTU attention of one head composed of separate ops, as in a framework without a fused
// kernel: scores, bias, SiLU and mask, product with the values, and their gradients, each a pass over an n x n matrix in
// memory. Keys are passed transposed, and the gradient of the bias is omitted: both favour this baseline.
//
// n tokens, a width of a head.

import type { Device } from '../../native/device.js';
import { add } from '../../ops/elementwise.js';
import { fillNormal } from '../../ops/fill.js';
import type { Tensor } from '../../tensor/tensor.js';

export interface HeadInputs {
  q: Tensor<'f32'>; // [n, a]
  keys: Tensor<'f32'>; // [a, n]
  v: Tensor<'f32'>; // [n, a]
  /** Position bias of every pair. */
  bias: Tensor<'f32'>; // [n, n]
}

export interface HeadGradients {
  q: Tensor<'f32'>;
  keys: Tensor<'f32'>;
  v: Tensor<'f32'>;
}

export class UnfusedAttention {
  readonly #device: Device;
  /** [n, 2n]: scores, and 1 / N where a key is visible, side by side as `swiglu_linear_residual` reads them. */
  readonly #pairs: Tensor<'f32'>;
  readonly #gradient: Tensor<'f32'>; // [n, 2n]
  readonly #zero: Tensor<'f32'>; // [n, a]
  readonly #stats: Tensor<'f32'>; // [n, 2]

  /** `constant`: N, the divisor of attention weights. */
  constructor(device: Device, { n, width, constant }: { n: number; width: number; constant: number }) {
    this.#device = device;
    this.#pairs = device.tensor([n, 2 * n]);
    this.#gradient = device.tensor([n, 2 * n]);
    this.#zero = device.tensor([n, width]);
    this.#stats = device.tensor([n, 2]);
    device.upload(this.#pairs.columns(n, n), causalMask(n, constant));
    fillNormal(device, this.#zero, { seed: 1, step: 0, purpose: 0 }, { std: 0 });
    fillNormal(device, this.#stats, { seed: 1, step: 0, purpose: 0 }, { std: 0 });
  }

  [Symbol.dispose](): void {
    for (const tensor of [this.#pairs, this.#gradient, this.#zero, this.#stats]) tensor.dispose();
  }

  /** out = (SiLU(q keys + bias) * mask) v */
  forward({ q, keys, v, bias }: HeadInputs, out: Tensor<'f32'>): void {
    const n = q.rows;
    using scores = this.#pairs.columns(0, n);
    const product = this.#device.call('norm_linear_forward').tensor(q).number(0).number(1e-6).dropout(undefined);
    product.tensor(keys).tensor(undefined).number(0).tensor(scores).tensor(undefined).tensor(this.#stats).submit();
    add(this.#device, 1, { x: bias, y: scores });
    const sum = this.#device.call('swiglu_linear_residual_forward').tensor(this.#pairs).tensor(v);
    sum.tensor(this.#zero).tensor(out).submit();
  }

  /** After `forward` of the same head. */
  backward({ q, keys, v }: HeadInputs, dOut: Tensor<'f32'>, to: HeadGradients): void {
    const target = (tensor: Tensor<'f32'>) => ({ to: tensor, accumulate: false });
    const pairs = this.#device.call('swiglu_linear_residual_backward').tensor(this.#pairs).tensor(v).tensor(dOut);
    pairs.grad(target(this.#gradient)).grad(target(to.v)).submit();
    using dScores = this.#gradient.columns(0, q.rows);
    const product = this.#device.call('norm_linear_backward').tensor(q).number(0).dropout(undefined).tensor(keys);
    product.number(0).tensor(undefined).tensor(this.#stats).tensor(dScores);
    product.grad(target(to.q)).grad(target(to.keys)).grad(undefined).submit();
  }
}

/** 1 / N where a key is visible, else 0. */
function causalMask(n: number, constant: number): Float32Array {
  const mask = new Float32Array(n * n);
  for (let i = 0; i < n; i++) mask.fill(1 / constant, i * n, i * n + i + 1);
  return mask;
}

/** Random inputs of a head, and buffers for output and gradients. */
export class RandomHead {
  readonly inputs: HeadInputs;
  readonly out: Tensor<'f32'>;
  readonly gradients: HeadGradients;
  readonly #all: Tensor<'f32'>[] = [];

  constructor(device: Device, n: number, width: number) {
    const make = (rows: number, cols: number, std: number): Tensor<'f32'> => {
      const tensor = device.tensor([rows, cols]);
      fillNormal(device, tensor, { seed: 1, step: 0, purpose: this.#all.length }, { std });
      this.#all.push(tensor);
      return tensor;
    };
    this.inputs = { q: make(n, width, 0.1), keys: make(width, n, 0.1), v: make(n, width, 1), bias: make(n, n, 0.1) };
    this.out = make(n, width, 1);
    this.gradients = { q: make(n, width, 0), keys: make(width, n, 0), v: make(n, width, 0) };
  }

  [Symbol.dispose](): void {
    for (const tensor of this.#all) tensor.dispose();
  }
}
