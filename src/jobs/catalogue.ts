// The item ids of a model and the unit of times: all the data that recommending needs. From the store of a run, or from a
// bundle.

import type { TimeKind } from '../data/store/store-index.js';
import type { Vocabulary } from '../data/store/vocabulary.js';

export interface Catalogue {
  readonly vocabulary: Vocabulary;
  readonly timeKind: TimeKind;
  /** The longest gap between consecutive training events of a user, in the unit of the log. */
  readonly longestGap: number;
}
