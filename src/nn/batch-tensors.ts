// A jagged batch on the device: what models read and losses need. Data is copied when it is made, so the batch's own
// buffers can be filled again at once.
//
// B sequences, T tokens.

import type { Device } from '../native/device.js';
import type { JaggedTokens } from '../ops/relative-attention.js';
import type { Tensor } from '../tensor/tensor.js';
import type { ModelShape } from './model-shape.js';

/** A jagged batch in memory, as the data layer makes it. */
export interface ModelInput {
  offsets: Int32Array; // [B + 1]
  item: Int32Array; // [T]
  /** [T] items to predict; absent when recommending. */
  target?: Int32Array;
  time?: BigInt64Array | Float64Array; // [T]
  nextTime?: BigInt64Array | Float64Array; // [T]
  action?: Int32Array; // [T]
}

export class BatchTensors {
  readonly tokens: JaggedTokens;
  readonly items: Tensor<'i32'>;
  readonly targets: Tensor<'i32'> | undefined;
  /** Row ids for the model's side tables, in their order. */
  readonly sideIds: readonly Tensor<'i32'>[];
  /** T. */
  readonly size: number;

  constructor(device: Device, input: ModelInput, shape: ModelShape) {
    const { item, time, nextTime, action } = input;
    this.size = item.length;
    this.items = device.from(item);
    this.targets = input.target && device.from(input.target);
    this.tokens = {
      offsets: device.from(input.offsets),
      ...(time && nextTime && { times: device.from(time), queryTimes: device.from(nextTime) }),
    };
    const side = shape.sideFeatures.map(({ ofItem }) => item.map(id => ofItem[id]!));
    if (shape.actions > 0) {
      if (!action) throw new Error('the model embeds actions, and the batch has none');
      side.unshift(action.map(id => (id < shape.actions ? id : -1)));
    }
    this.sideIds = side.map(ids => device.from(ids));
  }

  dispose(): void {
    const { offsets, times, queryTimes } = this.tokens;
    for (const tensor of [this.items, this.targets, offsets, times, queryTimes, ...this.sideIds]) tensor?.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}
