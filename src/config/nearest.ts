// "Did you mean": the known word with the smallest edit distance, if it is close enough.

/** Edits (insert, delete, replace) from a to b. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)));
    }
    row = next;
  }
  return row[b.length]!;
}

/** `Did you mean "x"? ` or nothing. */
export function nearest(word: string, known: readonly string[]): string {
  const lower = word.toLowerCase();
  const scored = known.map(name => ({ name, edits: distance(lower, name.toLowerCase()) }));
  const best = scored.sort((a, b) => a.edits - b.edits)[0];
  return best && best.edits <= Math.max(2, word.length / 3) ? `Did you mean "${best.name}"? ` : '';
}
