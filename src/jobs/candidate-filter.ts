// The candidate items of a request: those that satisfy its filter and are in its allow list.

import type { ItemColumns } from '../data/items/item-columns.js';
import { checkFilter, filterItems, type ItemFilter } from '../data/items/item-filter.js';
import type { Candidates } from '../eval/item-ranker.js';
import type { KnownItems } from './known-items.js';

/** Number of cached filters. */
const MOST_FILTERS = 100;

export class CandidateFilter {
  readonly #items: KnownItems;
  readonly #columns: () => ItemColumns;
  readonly #filtered = new Map<string, Candidates>();

  constructor(items: KnownItems, columns: () => ItemColumns) {
    this.#items = items;
    this.#columns = columns;
  }

  /** Undefined means the whole catalogue. Equal filters return the same object, so that a batch shares its scan. */
  choose(filter: ItemFilter, allow?: readonly (string | number)[]): Candidates | undefined {
    const met = this.#met(filter);
    if (!allow) return met;
    const allowed = new Set(allow.map(item => this.#items.find(item)).filter(id => id !== undefined));
    const within = met && new Set(met.ids);
    return {
      ids: Int32Array.from(allowed)
        .filter(id => within?.has(id) ?? true)
        .sort(),
    };
  }

  #met(filter: ItemFilter): Candidates | undefined {
    const key = JSON.stringify(filter);
    if (key === '{}') return undefined;
    const known = this.#filtered.get(key);
    if (known) return known;
    const met = { ids: filterItems(this.#columns(), checkFilter(filter), this.#items.count) };
    if (this.#filtered.size >= MOST_FILTERS) this.#filtered.clear();
    this.#filtered.set(key, met);
    return met;
  }

  /** Call when the columns have changed. */
  forget(): void {
    this.#filtered.clear();
  }
}
