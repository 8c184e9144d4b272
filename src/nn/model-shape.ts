// What decides the shapes of a model's weights, beside its definition.
//
// V items, N longest sequence + output slots.

import type { RowDtype } from '../ops/row-source.js';
import type { ModelDefinition } from './definition.js';
import type { Scoring } from './scorer.js';

/** A column that every item has, such as its category: an embedding of it is added to the item's. */
export interface SideFeature {
  readonly name: string;
  /** Number of different values. */
  readonly rows: number;
  /** [V] value of each item, -1 for none. */
  readonly ofItem: Int32Array;
}

export interface ModelShape {
  readonly definition: ModelDefinition;
  /** V. */
  readonly items: number;
  /** Positions that have an embedding: N. */
  readonly positions: number;
  /** Dropout of the embedded input. */
  readonly dropout: number;
  /** Different actions that get an embedding; 0 leaves actions out. */
  readonly actions: number;
  readonly sideFeatures: readonly SideFeature[];
  readonly scoring: Scoring;
  /** Of the item table; f32 in memory by default. */
  readonly itemStorage?: RowStorage;
}

export interface RowStorage {
  readonly dtype: RowDtype;
  /** Folder of a file in which the rows lie; in memory when absent. */
  readonly mappedIn?: string | undefined;
}
