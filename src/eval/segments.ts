// Metrics by segment: by length of the history, popularity of the target, and whether the target is new to the user.

import { bootstrap, type Interval } from './bootstrap.js';
import type { CaseFacts } from './case-facts.js';
import { byCount } from './known-events.js';
import { metricOf, type RankedCases, userScores } from './metrics.js';

export interface Segment {
  by: 'history length' | 'target popularity' | 'target';
  name: string;
  users: number;
  cases: number;
  /** Metrics of the model, with 95 % bootstrap intervals over users. */
  model: Record<string, Interval>;
  /** The other rankers on the same cases, by name. */
  others: Record<string, Record<string, number>>;
}

export const SEGMENT_METRICS = ['hr@10', 'ndcg@10', 'mrr'];

/** Histories of this many events or more, up to the next entry. */
const LENGTHS = [1, 5, 10, 20, 50, 100, 200, 500, 1000];
/** Items up to this share of the catalogue, the most popular first. */
const POPULAR = [
  { share: 0.01, name: 'most popular 1 % of items' },
  { share: 0.1, name: 'next 9 %' },
  { share: 1, name: 'other 90 %' },
];
const UNTRAINED = 'no training event';

export interface SegmentInput {
  /** By ranker, including `model`; all in the order of the facts. */
  rankers: Readonly<Record<string, RankedCases>>;
  facts: CaseFacts;
  /** [C] the items to find. */
  targets: Int32Array;
  /** [V] known events of each item. */
  counts: Int32Array | Float64Array;
}

/** Segments that have cases, in a fixed order. */
export function segmentCases({ rankers, facts, targets, counts }: SegmentInput): Segment[] {
  const popularity = popularityNames(counts);
  const ways: { by: Segment['by']; names: readonly string[]; of: (c: number) => string }[] = [
    {
      by: 'history length',
      names: LENGTHS.map((_, i) => lengthName(i)),
      of: c => lengthName(LENGTHS.findLastIndex(from => from <= Math.max(1, facts.history[c]!))),
    },
    {
      by: 'target popularity',
      names: [...POPULAR.map(({ name }) => name), UNTRAINED],
      of: c => popularity(targets[c]!),
    },
    { by: 'target', names: ['new', 'repeated'], of: c => (facts.repeated[c] ? 'repeated' : 'new') },
  ];
  return ways.flatMap(({ by, names, of }) => {
    const members = new Map(names.map(name => [name, [] as number[]]));
    targets.forEach((_, c) => members.get(of(c))!.push(c));
    return names
      .filter(name => members.get(name)!.length > 0)
      .map(name => ({ by, name, ...describe(rankers, members.get(name)!) }));
  });
}

function describe(
  rankers: SegmentInput['rankers'],
  members: readonly number[],
): Pick<Segment, 'users' | 'cases' | 'model' | 'others'> {
  const some = (cases: RankedCases): RankedCases => ({
    items: cases.items,
    ranks: Int32Array.from(members, c => cases.ranks[c]!),
    users: Int32Array.from(members, c => cases.users[c]!),
  });
  const { model, ...others } = rankers;
  const scores = userScores(some(model!), SEGMENT_METRICS);
  return {
    users: scores.counts.length,
    cases: members.length,
    model: Object.fromEntries(bootstrap(scores)),
    others: Object.fromEntries(
      Object.entries(others).map(([name, cases]) => {
        const picked = some(cases);
        return [name, Object.fromEntries(SEGMENT_METRICS.map(metric => [metric, metricOf(picked, metric)]))];
      }),
    ),
  };
}

function lengthName(i: number): string {
  const [from, next] = [LENGTHS[i]!, LENGTHS[i + 1]];
  return next === undefined ? `${from} or more events` : `${from} to ${next - 1} events`;
}

function popularityNames(counts: Int32Array | Float64Array): (item: number) => string {
  const group = new Uint8Array(counts.length);
  byCount(counts).forEach((item, place) => {
    group[item] = POPULAR.findIndex(({ share }) => place < Math.ceil(share * counts.length));
  });
  return item => (counts[item] === 0 ? UNTRAINED : POPULAR[group[item]!]!.name);
}
