// Vose's alias method: weighted draws in constant time.
//
// V items.

import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';

export interface AliasTable {
  threshold: Tensor<'f32'>; // [V]
  alias: Tensor<'i32'>; // [V]
  /** Log of each item's sampling probability, for the losses' logQ correction; -inf where the weight is 0. */
  logq: Tensor<'f32'>; // [V, 1]
}

/** `weights` [V] need not sum to 1. The caller owns the result. */
export function aliasTable(device: Device, weights: Tensor<'f32'>): AliasTable {
  const items = weights.size;
  const table = {
    threshold: device.tensor([1, items]),
    alias: device.tensor([1, items], 'i32'),
    logq: device.tensor([items, 1]),
  };
  device.call('alias_table').tensor(weights).tensor(table.threshold).tensor(table.alias).tensor(table.logq).submit();
  return table;
}
