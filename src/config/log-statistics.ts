// The input of the rules: statistics of the training events, and of the validation events if the log has any; never of the
// test events.

export interface LogStatistics {
  users: number;
  items: number;
  /** Training events. */
  events: number;
  hasTime: boolean;
  /** Training events per user. */
  length: { mean: number; median: number; p90: number; max: number };
  /** Users with held-out validation events. */
  validation: number;
  /** Share of validation targets that the user had before. Reads every history, so it is computed on demand. */
  readonly repeats: () => number;
  /** Number of next-event pairs within the `maxLength` newest events of each user. */
  readonly pairsWithin: (maxLength: number) => number;
}
