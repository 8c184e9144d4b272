// What the rules look at. Statistics of the training events, and of the validation events where the log has any; never of
// the test events.

export interface LogStatistics {
  users: number;
  items: number;
  /** Training events. */
  events: number;
  hasTime: boolean;
  /** Training events of a user. */
  length: { mean: number; median: number; p90: number; max: number };
  /** Users with held-out validation events. */
  validation: number;
  /** Share of validation targets that the user had before. Reads every history, so it is computed on demand. */
  readonly repeats: () => number;
  /** Next-event pairs that sequences of at most `maxLength` newest events hold. */
  readonly pairsWithin: (maxLength: number) => number;
}
