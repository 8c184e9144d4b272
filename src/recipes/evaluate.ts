// The whole job of evaluation: a run's chosen weights on held-out events, the baselines on the same cases.

import type { ResolvedConfig } from '../config/schema.js';
import { countItems, MarkovBaseline, PopularityBaseline } from '../eval/baselines.js';
import { rankBaseline } from '../eval/rank-baseline.js';
import { computeMetrics } from '../eval/metrics.js';
import { listQuality } from '../eval/list-quality.js';
import { rankCases } from '../eval/rank-cases.js';
import type { EvaluationReport } from '../eval/report.js';
import type { SequenceSource } from '../data/sequence-source.js';
import type { Model } from '../nn/model.js';
import { OpenRun } from './open-run.js';

/** Lists of this length are looked at for coverage and popularity. */
const LIST_LENGTH = 10;

export interface EvaluateOptions {
  part?: 'validation' | 'test';
  /** Left out of the ranking; as in the run's config unless given. */
  exclude?: 'history' | 'input' | 'none';
  threads?: number;
}

/** Evaluates the run in a folder, with the weights that validation chose. */
export async function evaluate(path: string, options: EvaluateOptions = {}): Promise<EvaluationReport> {
  using run = new OpenRun(path, options.threads === undefined ? {} : { threads: options.threads });
  const { evaluation, ...rest } = run.config;
  const config = { ...rest, evaluation: { ...evaluation, ...(options.exclude && { exclude: options.exclude }) } };
  return await evaluateModel({ model: run.model, source: run.source, config, part: options.part ?? 'test' });
}

export interface EvaluateModelInput {
  model: Model;
  source: SequenceSource;
  config: ResolvedConfig;
  part: 'validation' | 'test';
}

export async function evaluateModel({ model, source, config, part }: EvaluateModelInput): Promise<EvaluationReport> {
  const started = performance.now();
  const { exclude, cutoffs, targets } = config.evaluation;
  const which = { source, part, exclude, targets };
  const { normalizeItem } = config.loss;
  const cases = await rankCases({ ...which, model, normalizeItem, listLength: LIST_LENGTH });
  const popularity = countItems(source, part);
  const metrics: EvaluationReport['metrics'] = { model: computeMetrics(cases, cutoffs) };
  for (const baseline of [new PopularityBaseline(popularity), new MarkovBaseline(source, part)]) {
    const ranked = rankBaseline({ ...which, baseline, maxLength: model.definition.maxLength });
    metrics[baseline.name] = computeMetrics(ranked, cutoffs);
  }
  return {
    part,
    fingerprint: source.fingerprint,
    split: source.split.kind,
    exclude,
    items: source.items,
    cases: cases.ranks.length,
    excludedTargets: cases.ranks.filter(rank => rank > source.items).length,
    metrics,
    lists: listQuality({ k: LIST_LENGTH, lists: cases.lists, targets: cases.targets, popularity }),
    seconds: (performance.now() - started) / 1000,
  };
}
