// A dense gradient while a lane is computed: the first op overwrites, later ones accumulate. The lane sum takes the buffer
// and returns it afterwards, so a run keeps only as many buffers as it needs at once.

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

  /** Sum of the ops' gradients; absent if there are none. */
  get value(): Tensor<'f32'> | undefined {
    return this.#value;
  }

  /** Destination of the next gradient. */
  target(): GradTarget {
    const accumulate = this.#value !== undefined;
    return { to: (this.#value ??= this.#buffer()), accumulate };
  }

  /** Transfers the gradient to the caller, who calls `giveBack` when done. */
  take(): Tensor<'f32'> | undefined {
    const taken = this.#value;
    this.#value = undefined;
    return taken;
  }

  /** A buffer for a gradient computed elsewhere; contents are unspecified. */
  spare(): Tensor<'f32'> {
    return this.#buffer();
  }

  /** Returns a buffer for reuse. */
  giveBack(buffer: Tensor<'f32'>): void {
    this.#spare.push(buffer);
  }

  /** Discards the gradient and keeps its memory. */
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
