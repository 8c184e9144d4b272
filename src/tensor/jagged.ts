// A jagged batch in memory: concatenated sequences without padding. The only form of a batch between data layer and model, in
// training, evaluation, serving and benchmarks.
//
// B sequences, T tokens.

export interface JaggedBatch {
  /** [B + 1] sequence b is tokens offsets[b] .. offsets[b + 1] - 1, oldest first. */
  offsets: Int32Array;
  /** [T] input items. */
  item: Int32Array;
  /** [T] the next item; absent when recommending. */
  target?: Int32Array;
  /** [T] timestamps in the source's unit; absent if the log has only an order. */
  time?: BigInt64Array | Float64Array;
  /** [T] the target's time. */
  nextTime?: BigInt64Array | Float64Array;
  /** [T] the input's action bits. */
  action?: Int32Array;
}
