// What a recommender is asked, in the log's own ids, and what it answers.

import type { ItemFilter } from '../data/items/item-filter.js';

/** An event of a history; the time is in the unit of the log, and may be left out when the model uses none. */
export interface HistoryEvent {
  item: string | number;
  time?: number | undefined;
  action?: number | undefined;
}

export type HistoryInput = readonly (string | number | HistoryEvent)[];

export interface RecommendOptions {
  /** How many items (10 by default). */
  k?: number | undefined;
  /** `history` leaves out what the user has already had, `none` does not; by default as the run was evaluated. */
  exclude?: 'history' | 'none' | undefined;
  /** Only these items. */
  allow?: readonly (string | number)[] | undefined;
  /** None of these items; unknown ones are ignored. */
  deny?: readonly (string | number)[] | undefined;
  /** Conditions on item columns. */
  filter?: ItemFilter | undefined;
  /** The moment to recommend for, in the unit of the log. By default now, at most the log's longest gap after the last event. */
  at?: number | undefined;
  /** What to do with items the model does not know: refuse (the default), or leave them out of the history. */
  unknown?: 'refuse' | 'skip' | undefined;
}

export interface Recommendation {
  /** Item id as in the log. */
  item: string;
  /** What the loss trains (cosine / temperature for normalised sides), plus priors if the run has them; see `basis`. */
  score: number;
  /** Set where the history was empty: the score is then how often the item occurs in the log. */
  basis?: 'popularity';
}

export interface RecommendRequest extends RecommendOptions {
  history: HistoryInput;
}
