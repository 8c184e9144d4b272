// Quality of recommended lists besides accuracy: catalogue coverage, and popularity bias compared to the true targets.

import { byCount } from './known-events.js';

export interface ListQuality {
  /** List length. */
  k: number;
  /** Share of the catalogue that appears in at least one list. */
  coverage: number;
  /** Share of recommended slots that go to the most popular tenth of the catalogue. */
  popularShare: number;
  /** The same share among the true targets: a larger share of slots is popularity bias. */
  popularShareOfTargets: number;
}

/** The most popular tenth of the catalogue as a mask. */
function popularTenth(popularity: Float64Array | Int32Array): Uint8Array {
  const mask = new Uint8Array(popularity.length);
  for (const item of byCount(popularity).subarray(0, Math.ceil(popularity.length / 10))) mask[item] = 1;
  return mask;
}

function shareOf(mask: Uint8Array, items: Int32Array): number {
  let [hits, known] = [0, 0];
  for (const item of items) {
    if (item < 0) continue; // an empty slot: fewer than k items to rank
    known++;
    hits += mask[item]!;
  }
  return known === 0 ? 0 : hits / known;
}

export interface ListQualityInput {
  k: number;
  /** [C * k] recommended items, -1 for an empty slot. */
  lists: Int32Array;
  /** [C] the true next items. */
  targets: Int32Array;
  /** [V] training events of each item. */
  popularity: Float64Array | Int32Array;
}

export function listQuality({ k, lists, targets, popularity }: ListQualityInput): ListQuality {
  const used = new Uint8Array(popularity.length);
  for (const item of lists) if (item >= 0) used[item] = 1;
  const mask = popularTenth(popularity);
  return {
    k,
    coverage: used.reduce((sum, flag) => sum + flag, 0) / Math.max(1, popularity.length),
    popularShare: shareOf(mask, lists),
    popularShareOfTargets: shareOf(mask, targets),
  };
}
