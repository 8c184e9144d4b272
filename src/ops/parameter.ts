// A dense parameter: its value and its gradient.

import type { GradTarget } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';
import { DenseGradient } from './dense-gradient.js';

export class Parameter {
  readonly name: string;
  readonly value: Tensor<'f32'>;
  readonly gradient: DenseGradient;

  constructor(device: Device, name: string, value: Tensor<'f32'>) {
    this.name = name;
    this.value = value;
    this.gradient = new DenseGradient(device, value.shape);
  }

  /** Sum of the gradients since `clearGrad`; absent if there are none. */
  get grad(): Tensor<'f32'> | undefined {
    return this.gradient.value;
  }

  /** Destination of the next gradient: the first overwrites, later ones accumulate. */
  gradTarget(): GradTarget {
    return this.gradient.target();
  }

  clearGrad(): void {
    this.gradient.clear();
  }

  dispose(): void {
    this.value.dispose();
    this.gradient.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}
