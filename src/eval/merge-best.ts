// Merges ranked lists of parts of a catalogue: highest score first, ties by the lower id.

export interface RankedLists {
  /** [C * k] padded with -1. */
  readonly ids: Int32Array;
  /** [C * k] padded with -Infinity. */
  readonly scores: Float64Array;
}

export interface Ranked {
  item: number;
  score: number;
}

export function listOf({ ids, scores }: RankedLists, c: number, k: number): Ranked[] {
  return Array.from({ length: k }, (_, i) => ({ item: ids[c * k + i]!, score: scores[c * k + i]! }));
}

/** The best k of candidates, for each case. */
export function rankBest(cases: readonly (readonly Ranked[])[], k: number): RankedLists {
  const found = {
    ids: new Int32Array(cases.length * k).fill(-1),
    scores: new Float64Array(cases.length * k).fill(-Infinity),
  };
  cases.forEach((candidates, c) => {
    const best = candidates.filter(({ item }) => item >= 0).sort((a, b) => b.score - a.score || a.item - b.item);
    best.slice(0, k).forEach(({ item, score }, i) => {
      found.ids[c * k + i] = item;
      found.scores[c * k + i] = score;
    });
  });
  return found;
}

export function mergeBest(parts: readonly RankedLists[], k: number): RankedLists {
  if (parts.length === 1) return parts[0]!;
  const cases = Array.from({ length: k === 0 ? 0 : parts[0]!.ids.length / k }, (_, c) =>
    parts.flatMap(part => listOf(part, c, k)),
  );
  return rankBest(cases, k);
}
