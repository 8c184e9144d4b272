// A dense gradient while a lane is computed: the first op overwrites, later ones add. Whoever sums lanes takes it away and
// gives the memory back afterwards, so a run keeps as many buffers as it ever needs at once.

import type { GradTarget } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Shape, Tensor } from '../tensor/tensor.js';

export class DenseGradient {
  readonly #device: Device;
  readonly #shape: Shape;
  readonly #spare: Tensor<'f32'>[] = [];
  #value: Tensor<'f32'> | undefined;

  constructor(device: Device, shape: Shape) {
    this.#device = device;
    this.#shape = shape;
  }

  /** Sum of what ops gave; absent when none did. */
  get value(): Tensor<'f32'> | undefined {
    return this.#value;
  }

  /** Where the next gradient goes. */
  target(): GradTarget {
    const accumulate = this.#value !== undefined;
    return { to: (this.#value ??= this.#buffer()), accumulate };
  }

  /** Hands the gradient over; `giveBack` when its values are no longer needed. */
  take(): Tensor<'f32'> | undefined {
    const taken = this.#value;
    this.#value = undefined;
    return taken;
  }

  /** A buffer for a gradient that comes from elsewhere; its contents are unspecified. */
  spare(): Tensor<'f32'> {
    return this.#buffer();
  }

  /** A buffer to reuse. */
  giveBack(buffer: Tensor<'f32'>): void {
    this.#spare.push(buffer);
  }

  /** Forgets the gradient. Its memory stays. */
  clear(): void {
    const taken = this.take();
    if (taken) this.giveBack(taken);
  }

  dispose(): void {
    this.clear();
    for (const buffer of this.#spare) buffer.dispose();
    this.#spare.length = 0;
  }

  #buffer(): Tensor<'f32'> {
    return this.#spare.pop() ?? this.#device.tensor(this.#shape);
  }
}
