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
  /** Held-out validation events, and the share of them whose item is among the user's earlier ones. */
  validation: number;
  repeats: number;
  /** Next-event pairs that sequences of at most `maxLength` newest events hold. */
  readonly pairsWithin: (maxLength: number) => number;
}
