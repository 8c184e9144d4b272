// A jagged batch on the device, for models and losses. Data is copied on construction, so the host buffers can be reused at
// once.
//
// B sequences, T tokens.

import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { JaggedTokens } from '../ops/relative-attention.js';
import type { JaggedBatch } from '../tensor/jagged.js';
import type { Tensor } from '../tensor/tensor.js';
import type { ModelShape } from './model-shape.js';

export class BatchTensors {
  readonly tokens: JaggedTokens;
  readonly items: Tensor<'i32'>; // [T]
  readonly targets: Tensor<'i32'> | undefined; // [T]
  /** Row ids for the model's side tables, in their order. */
  readonly sideIds: readonly Tensor<'i32'>[];
  /** T. */
  readonly size: number;

  constructor(device: Device, input: JaggedBatch, shape: ModelShape, stream: StreamName = 'compute') {
    const { item, time, nextTime, action } = input;
    this.size = item.length;
    const ids = (values: Int32Array): Tensor<'i32'> => device.from(values, [1, values.length], { stream });
    const times = (values: BigInt64Array | Float64Array): Tensor<'i64'> =>
      device.from(values, [1, values.length], { stream });
    this.items = ids(item);
    this.targets = input.target && ids(input.target);
    this.tokens = {
      offsets: ids(input.offsets),
      ...(time && nextTime && { times: times(time), queryTimes: times(nextTime) }),
    };
    const side = shape.sideFeatures.map(({ ofItem }) => item.map(id => ofItem[id]!));
    if (shape.actions > 0) {
      if (!action) throw new Error('the model embeds actions, and the batch has none');
      side.unshift(action.map(id => (id < shape.actions ? id : -1)));
    }
    this.sideIds = side.map(ids);
  }

  dispose(): void {
    const { offsets, times, queryTimes } = this.tokens;
    for (const tensor of [this.items, this.targets, offsets, times, queryTimes, ...this.sideIds]) tensor?.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}
