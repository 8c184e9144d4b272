// The interface of a data set for training, evaluation and batching: users, their events in order, and the split. Implemented
// by the store on disk and by arrays in memory.

/** Columns that `read` fills. Times are integers in the source's unit; a Float64Array is exact below 2^53. */
export interface EventColumns {
  item: Int32Array;
  time?: Float64Array | BigInt64Array;
  action?: Int32Array;
}

/**
 * Three consecutive ranges of every user's events, by position in the user's order:
 * train is [0, trainEnd), validation is [trainEnd, validationEnd), test is [validationEnd, length).
 * Leave-one-out has at most one event in each of the last two; a fully held-out user has trainEnd 0.
 */
export interface Split {
  /** For example 'leave-one-out', 'time:1651363200000', 'user:0.1', 'none'. */
  readonly kind: string;
  readonly trainEnd: Int32Array;
  readonly validationEnd: Int32Array;
}

export interface SequenceSource {
  readonly users: number;
  /** Size of the catalogue: every item id is in 0..items-1. */
  readonly items: number;
  /** Events of every user, all parts of the split together. */
  readonly lengths: Int32Array;
  readonly split: Split;
  /** SHA-256 of the split's content: results under different fingerprints are not comparable. */
  readonly fingerprint: string;
  /** False if the log has only an order, no times. */
  readonly hasTime: boolean;
  /** Units of the times per day; absent without times. */
  readonly ticksPerDay?: number;
  readonly hasAction: boolean;
  /**
   * [items] events of each item before the evaluated part: train for validation, train and validation for test. Absent, or
   * undefined: not known without reading all events.
   */
  itemCounts?(part: 'validation' | 'test'): Int32Array | undefined;
  length(user: number): number;
  /** Copy events [from, to) of `user` into the target columns, starting at index `at`. */
  read(user: number, from: number, to: number, into: EventColumns, at: number): void;
}
