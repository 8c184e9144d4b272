// Baselines on the validation events, by the validation metric: the values that a validation curve should exceed.

import { MarkovBaseline, PopularityBaseline, RecencyBaseline } from './baselines.js';
import type { CaseOptions } from './cases.js';
import { countItems } from './known-events.js';
import { metricOf } from './metrics.js';
import { rankBaseline } from './rank-baseline.js';
import { Successors } from './successors.js';

/** Above this many pairs of items, only a share of the users is counted. */
const MOST_PAIRS = 2e7;

/** By name of the baseline. Collective. */
export async function validationBaselines(cases: CaseOptions, metric: string): Promise<Record<string, number>> {
  const { source, part } = cases;
  const popularity = new PopularityBaseline(countItems(source, part));
  const successors = new Successors(source, part, { place: popularity.place, mostPairs: MOST_PAIRS });
  const baselines = [popularity, new MarkovBaseline(popularity, successors), new RecencyBaseline(popularity)];
  const values: Record<string, number> = {};
  for (const baseline of baselines) {
    values[baseline.name] = metricOf(await rankBaseline({ ...cases, baseline }), metric);
  }
  return values;
}
