// A dense parameter: its value, and a gradient buffer that is kept from step to step.

import type { GradTarget } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';

export class Parameter {
  readonly name: string;
  readonly value: Tensor<'f32'>;
  readonly #device: Device;
  #buffer: Tensor<'f32'> | undefined;
  #written = false;

  constructor(device: Device, name: string, value: Tensor<'f32'>) {
    this.#device = device;
    this.name = name;
    this.value = value;
  }

  /** Sum of the gradients since `clearGrad`; absent when no op gave one. */
  get grad(): Tensor<'f32'> | undefined {
    return this.#written ? this.#buffer : undefined;
  }

  /** Where the next gradient goes: the first one overwrites, later ones add. */
  gradTarget(): GradTarget {
    const accumulate = this.#written;
    this.#written = true;
    return { to: (this.#buffer ??= this.#device.tensor(this.value.shape)), accumulate };
  }

  /** Forgets the gradient. Its memory stays and is not touched before the next gradient. */
  clearGrad(): void {
    this.#written = false;
  }

  dispose(): void {
    this.value.dispose();
    this.#buffer?.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}
