// What determines the shapes of a model's weights, besides its definition.
//
// V items, N longest sequence + output slots.

import type { RowDtype } from '../ops/row-source.js';
import type { ModelDefinition } from './definition.js';
import type { Scoring } from './scorer.js';

/** An item column, such as its category, whose embedding is added to the item's. */
export interface SideFeature {
  readonly name: string;
  /** Number of distinct values. */
  readonly rows: number;
  /** [V] value of each item, -1 for none. */
  readonly ofItem: Int32Array;
}

export interface ModelShape {
  readonly definition: ModelDefinition;
  /** V. */
  readonly items: number;
  /** Number of position embeddings: N. */
  readonly positions: number;
  /** Dropout of the embedded input. */
  readonly dropout: number;
  /** Number of embedded actions; 0 to ignore actions. */
  readonly actions: number;
  readonly sideFeatures: readonly SideFeature[];
  readonly scoring: Scoring;
  /** Storage of the item table; default: f32 in memory. */
  readonly itemStorage?: RowStorage;
}

export interface RowStorage {
  readonly dtype: RowDtype;
  /** Folder for a memory-mapped file of the rows; default: in memory. */
  readonly mappedIn?: string | undefined;
}
