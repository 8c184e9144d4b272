// Reverse-mode differentiation. An op enqueues its forward at once and, while training, records a node that propagates
// gradients from its outputs to its inputs. `backward` visits the nodes in reverse and frees memory as it goes: a node's
// outputs are not needed once its backward has been enqueued.
//
// The tape knows nothing about models. A new op only has to record a node.

import type { Dropout, GradTarget, RandomKey } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Layout, Shape, Tensor } from '../tensor/tensor.js';
import { TurboError } from '../tensor/turbo-error.js';
import { GradBuffer } from './grad-buffer.js';
import type { PackedWeights, Pass } from './pack-weight.js';
import type { Parameter } from './parameter.js';

export interface TapeOptions {
  /** Record nodes for backward and apply dropout. Otherwise intermediates are freed by `scope`. */
  training: boolean;
  /** Random numbers are a pure function of seed, step and the op's position in the step. */
  seed?: number;
  step?: number;
  /** Weights that several tapes share; otherwise every product packs its own. */
  packed?: PackedWeights | undefined;
}

export interface Node {
  /** The op's results. */
  readonly outputs: readonly Tensor<'f32'>[];
  /** Tensors saved for backward. */
  readonly saved?: readonly Tensor[];
  /** Propagates gradients: reads `grad(output)`, writes `gradTarget(input)`. Skipped if no output has a gradient. */
  backward(): void;
}

export class Tape {
  readonly device: Device;
  readonly training: boolean;
  readonly #seed: number;
  readonly #step: number;
  readonly #packed: PackedWeights | undefined;
  #purpose = 0;
  #nodes: Node[] = [];
  readonly #grads = new Map<Tensor, GradBuffer>();
  /** Activations through which gradients flow. */
  readonly #tracked = new Set<Tensor>();
  /** Owned tensors by scope, the outermost first. */
  #scopes: Tensor[][] = [[]];
  readonly #owned: { dispose(): void }[] = [];
  /** Unneeded gradients, freed at the end of the node. */
  #unwanted: Tensor[] = [];

  constructor(device: Device, options: TapeOptions) {
    this.device = device;
    this.training = options.training;
    this.#seed = options.seed ?? 0;
    this.#step = options.step ?? 0;
    this.#packed = options.packed;
  }

  // For ops

  /** A new activation. Freed by backward, or by the scope when not training. */
  output(rows: number, cols: number, layout?: Layout): Tensor<'f32'> {
    const tensor = this.device.tensor([rows, cols], 'f32', layout);
    if (!this.training) this.#scopes.at(-1)!.push(tensor);
    return tensor;
  }

  /** A tensor that lives until the tape is disposed, such as a loss. */
  result(shape: Shape): Tensor<'f32'> {
    const tensor = this.device.tensor(shape);
    this.#scopes[0]!.push(tensor);
    return tensor;
  }

  /** Keeps a tensor, or any other disposable, until the tape is disposed. */
  own<T extends { dispose(): void }>(thing: T): T {
    this.#owned.push(thing);
    return thing;
  }

  /** A layer's weight, packed for the pass that reads it if this tape shares packed weights. */
  weight(w: Parameter, pass: Pass): Tensor<'f32'> {
    return this.#packed?.of(w, pass) ?? w.value;
  }

  /** Records a node; when not training, frees its saved tensors. */
  record(node: Node): void {
    if (!this.training) {
      for (const tensor of node.saved ?? []) tensor.dispose();
      return;
    }
    this.#nodes.push(node);
    for (const output of node.outputs) this.#tracked.add(output);
  }

  /** The complete gradient of an op's output. */
  grad(output: Tensor<'f32'>): Tensor<'f32'> {
    const buffer = this.#grads.get(output);
    if (buffer) return buffer.complete();
    // An unused output of several.
    const zero = GradBuffer.empty(this.device, output);
    this.#grads.set(output, zero);
    return zero.complete();
  }

  /** Destination of an input's gradient; undefined if none is needed (data, not an activation). */
  gradTarget(input: Tensor): GradTarget | undefined {
    if (!this.#tracked.has(input.root)) return undefined;
    let buffer = this.#grads.get(input.root);
    if (!buffer) {
      buffer = GradBuffer.empty(this.device, input.root);
      this.#grads.set(input.root, buffer);
    }
    return buffer.target(input.from, input.cols);
  }

  /** Like `gradTarget`, for kernels that always write a gradient. */
  someTarget(input: Tensor): GradTarget {
    const wanted = this.gradTarget(input);
    if (wanted) return wanted;
    const to = this.device.tensor(input.shape, 'f32', input.layout);
    this.#unwanted.push(to);
    return { to, accumulate: false };
  }

  /** A residual: the input's gradient is the output's. Moves the buffer when the input has none, adds otherwise. */
  passGrad(output: Tensor<'f32'>, input: Tensor<'f32'>): void {
    if (!this.#tracked.has(input.root)) return;
    const passed = this.takeGrad(output);
    if (input.root === input && !this.#grads.has(input)) {
      this.#grads.set(input, GradBuffer.holding(this.device, passed));
      return;
    }
    const target = this.someTarget(input);
    if (!target.accumulate) this.device.call('fill_constant').number(0).tensor(target.to).submit();
    this.device.call('add').number(1).tensor(passed).tensor(target.to).submit();
    passed.dispose();
  }

  /** Takes an output's gradient out of the tape: the caller owns it. */
  takeGrad(output: Tensor<'f32'>): Tensor<'f32'> {
    const grad = this.grad(output);
    this.#grads.delete(output);
    return grad;
  }

  /** Dropout with its own random numbers; undefined when not training. */
  dropout(p: number): Dropout | undefined {
    if (!(p >= 0 && p < 1)) {
      const got = String(p);
      throw new TurboError({ kind: 'argument', op: 'dropout', input: 'p', expected: 'a number in [0, 1)', got });
    }
    return this.training && p > 0 ? { p, key: this.random() } : undefined;
  }

  /** The random key of the next random op of the step. */
  random(): RandomKey {
    return { seed: this.#seed, step: this.#step, purpose: this.#purpose++ };
  }

  /** Number of random ops so far. */
  get randomOps(): number {
    return this.#purpose;
  }

  // For models and trainers

  /** Also computes the gradient of an input that no op produced; see `inputGrad`. */
  watch(input: Tensor<'f32'>): void {
    this.#tracked.add(input);
  }

  /** The gradient of a watched input after backward; undefined if it was not used. The caller owns it. */
  inputGrad(input: Tensor<'f32'>): Tensor<'f32'> | undefined {
    return this.#grads.has(input) ? this.takeGrad(input) : undefined;
  }

  /** Seeds backward with the gradient of an activation, which the tape then owns. Losses need no seed. */
  seedGrad(output: Tensor<'f32'>, grad: Tensor<'f32'>): void {
    this.#grads.set(output, GradBuffer.holding(this.device, grad));
  }

  /** Runs `body` and frees its tensors except the returned ones. While training, backward frees them instead. */
  scope<T extends Tensor>(body: () => T): T {
    this.#scopes.push([]);
    try {
      const kept = body();
      const made = this.#scopes.at(-1)!;
      const at = made.indexOf(kept.root);
      if (at >= 0) this.#scopes.at(-2)!.push(...made.splice(at, 1));
      return kept;
    } finally {
      for (const tensor of this.#scopes.pop()!) tensor.dispose();
    }
  }

  /** Enqueues the backward pass: parameters and tables have their gradients afterwards. */
  backward(): void {
    for (let node = this.#nodes.pop(); node; node = this.#nodes.pop()) {
      if (node.outputs.some(output => this.#grads.has(output))) node.backward();
      this.#forget(node);
    }
  }

  /** Frees everything the tape still holds. */
  dispose(): void {
    for (let node = this.#nodes.pop(); node; node = this.#nodes.pop()) this.#forget(node);
    for (const buffer of this.#grads.values()) buffer.tensor.dispose();
    this.#grads.clear();
    this.#tracked.clear();
    this.#dropUnwanted();
    for (const tensor of this.#scopes.flat()) tensor.dispose();
    this.#scopes = [[]];
    for (const thing of this.#owned.splice(0)) thing.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  #forget(node: Node): void {
    for (const output of node.outputs) {
      this.#grads.get(output)?.tensor.dispose();
      this.#grads.delete(output);
      this.#tracked.delete(output);
      output.dispose();
    }
    for (const tensor of node.saved ?? []) tensor.dispose();
    this.#dropUnwanted();
  }

  #dropUnwanted(): void {
    for (const tensor of this.#unwanted) tensor.dispose();
    this.#unwanted = [];
  }
}
