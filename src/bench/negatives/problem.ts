// States, a table and positives of random numbers, for measuring a loss on its own.

import type { Device } from '../../native/device.js';
import { fillNormal } from '../../ops/fill.js';
import { Table } from '../../ops/table.js';
import type { Tensor } from '../../tensor/tensor.js';

export interface Problem {
  u: Tensor<'f32'>; // [T, D]
  items: Table; // [V, D]
  positives: Tensor<'i32'>; // [T]
}

export function randomProblem(device: Device, size: { tokens: number; width: number; items: number }): Problem {
  const { tokens, width, items } = size;
  const value = device.tensor([items, width]);
  fillNormal(device, value, { seed: 1, step: 0, purpose: 0 }, { std: 1 });
  const u = device.tensor([tokens, width]);
  fillNormal(device, u, { seed: 1, step: 0, purpose: 1 }, { std: 1 });
  const positives = device.from(Int32Array.from({ length: tokens }, (_, t) => (t * 97) % items));
  return { u, items: new Table(device, 'items', value), positives };
}
