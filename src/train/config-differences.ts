// The keys in which two configs differ, in readable form: `optimizer.lr 0.001, now 0.01`.

type Tree = Readonly<Record<string, unknown>>;

export function configDifferences(known: object, now: object, without: readonly string[] = []): string[] {
  const [before, after] = [flatten(known), flatten(now)];
  const keys = [...new Set([...before.keys(), ...after.keys()])];
  return keys
    .filter(key => !without.includes(key.split('.')[0]!) && before.get(key) !== after.get(key))
    .map(key => `${key} ${before.get(key) ?? 'unset'}, now ${after.get(key) ?? 'unset'}`);
}

function isTree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** By dotted path, as JSON. */
function flatten(tree: object, under = ''): Map<string, string> {
  return new Map(
    Object.entries(tree).flatMap(([key, value]: [string, unknown]) =>
      isTree(value) ? [...flatten(value, `${under}${key}.`)] : [[`${under}${key}`, JSON.stringify(value)] as const],
    ),
  );
}
