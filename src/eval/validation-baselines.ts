// What needs no model, by the metric that chooses the epoch and on the same events: the lines that a validation curve has
// to cross.

import { MarkovBaseline, PopularityBaseline, RecencyBaseline } from './baselines.js';
import type { CaseOptions } from './cases.js';
import { countItems } from './known-events.js';
import { metricOf } from './metrics.js';
import { rankBaseline } from './rank-baseline.js';
import { Successors } from './successors.js';

/** More pairs of items than that are counted on a share of the users. */
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
