// Requests to a recommender and its answers, in original ids.

import type { ItemFilter } from '../data/items/item-filter.js';

/** An event of a history; the time is in the unit of the log, and optional if the model uses none. */
export interface HistoryEvent {
  item: string | number;
  time?: number | undefined;
  action?: number | undefined;
}

export type HistoryInput = readonly (string | number | HistoryEvent)[];

export interface RecommendOptions {
  /** Number of items (default 10). */
  k?: number | undefined;
  /** `history` excludes items the user already had; default: as the run was evaluated. */
  exclude?: 'history' | 'none' | undefined;
  /** Only these items. */
  allow?: readonly (string | number)[] | undefined;
  /** None of these items; unknown ones are ignored. */
  deny?: readonly (string | number)[] | undefined;
  /** Conditions on item columns. */
  filter?: ItemFilter | undefined;
  /** The time to recommend for, in the unit of the log. Default: now, at most the log's longest gap after the last event. */
  at?: number | undefined;
  /** What to do with unknown items: refuse (default), or skip them in the history. */
  unknown?: 'refuse' | 'skip' | undefined;
}

export interface Recommendation {
  /** Item id as in the log. */
  item: string;
  /** The logit of the loss (cosine / temperature if normalised), plus priors if the run has them; see `basis`. */
  score: number;
  /** Set if the history was empty: the score is then the item's count in the log. */
  basis?: 'popularity';
}

export interface RecommendRequest extends RecommendOptions {
  history: HistoryInput;
}
