// The items of a model by the log's own ids, and how times are counted: all that recommending needs to know of the data.
// A run has it from its store, a bundle carries it.

import type { TimeKind } from '../data/store/store-index.js';
import type { Vocabulary } from '../data/store/vocabulary.js';

export interface Catalogue {
  readonly vocabulary: Vocabulary;
  readonly timeKind: TimeKind;
  /** The longest time between neighbouring training events of a user, in the unit of the log. */
  readonly longestGap: number;
}
