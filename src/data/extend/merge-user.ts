// Merges one user's events from a store and a newer log by time. Events that the store already has are taken once, so the
// newer log may repeat old events or be the whole grown log.

export interface UserEvents {
  readonly items: Int32Array;
  /** Undefined when the log has an order and no times. */
  readonly times: BigInt64Array | undefined;
  readonly actions: Int32Array | undefined;
}

/** Places of the merged events: p >= 0 is event p of the base, p < 0 event ~p of the newer ones. */
export function mergeUser(base: UserEvents, newer: UserEvents): Int32Array {
  const fresh = unknownEvents(base, newer);
  const merged = new Int32Array(base.items.length + fresh.length);
  let [b, f] = [0, 0];
  for (let at = 0; at < merged.length; at++) {
    const takesBase =
      f === fresh.length ||
      (b < base.items.length && (!base.times || !newer.times || base.times[b]! <= newer.times[fresh[f]!]!));
    merged[at] = takesBase ? b++ : ~fresh[f++]!;
  }
  return merged;
}

/** Newer events that the base does not have; an event that occurs n times in the base is skipped at most n times. */
function unknownEvents(base: UserEvents, newer: UserEvents): number[] {
  const places = Array.from(newer.items.keys());
  const first = newer.times?.[0];
  const last = base.times?.at(-1);
  if (first === undefined || last === undefined || first > last) return places;
  const known = new Map<string, number>();
  for (let i = base.items.length - 1; i >= 0 && base.times![i]! >= first; i--) {
    const key = keyOf(base, i);
    known.set(key, (known.get(key) ?? 0) + 1);
  }
  return places.filter(i => {
    const key = keyOf(newer, i);
    const left = known.get(key) ?? 0;
    known.set(key, left - 1);
    return left <= 0;
  });
}

function keyOf({ items, times, actions }: UserEvents, i: number): string {
  return `${times![i]} ${items[i]} ${actions?.[i] ?? 0}`;
}
