// A jagged batch in memory: sequences end to end, no padding. The one form in which batches leave the data layer and reach
// a model, in training, evaluation, serving and benchmarks alike.
//
// B sequences, T tokens.

export interface JaggedBatch {
  /** [B + 1] sequence b is tokens offsets[b] .. offsets[b + 1] - 1, oldest first. */
  offsets: Int32Array;
  /** [T] what the model reads. */
  item: Int32Array;
  /** [T] the item after it; absent when recommending. */
  target?: Int32Array;
  /** [T] when, in the source's unit; absent when the log has only an order. */
  time?: BigInt64Array | Float64Array;
  /** [T] the target's time. */
  nextTime?: BigInt64Array | Float64Array;
  /** [T] the input's action bits. */
  action?: Int32Array;
}
