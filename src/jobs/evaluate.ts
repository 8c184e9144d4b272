// The evaluation job: a run's chosen weights on held-out events, and the baselines on the same cases.

import type { PriorWeights } from '../config/prior-weights.js';
import type { ResolvedConfig } from '../config/schema.js';
import type { SequenceSource } from '../data/sequence-source.js';
import { blameStore } from '../data/store/damaged-store.js';
import { type RankGroups, singleGroup } from '../dist/shard/rank-groups.js';
import { type Baseline, MarkovBaseline, RecencyBaseline } from '../eval/baselines.js';
import { caseFacts, shareOf } from '../eval/case-facts.js';
import { listQuality } from '../eval/list-quality.js';
import { computeMetrics, type RankedCases } from '../eval/metrics.js';
import { fitPriors } from '../eval/priors/fit-priors.js';
import { LogPriors } from '../eval/priors/log-priors.js';
import { rankWithPriors } from '../eval/priors/rank-with-priors.js';
import { rankBaseline } from '../eval/rank-baseline.js';
import { rankCases } from '../eval/rank-cases.js';
import type { EvaluationReport } from '../eval/report.js';
import { segmentCases } from '../eval/segments.js';
import type { Model } from '../nn/model.js';
import { OpenRun } from './open-run.js';
import type { ModelBuilder } from './train-options.js';

/** List length for coverage and popularity. */
const LIST_LENGTH = 10;

export interface EvaluateOptions {
  part?: 'validation' | 'test';
  /** Excluded from the ranking; default: as in the run's config. */
  exclude?: 'history' | 'input' | 'none';
  threads?: number;
  /** The run's custom model, if it was trained with one. */
  model?: ModelBuilder;
  /** The run's sequence store, if it was moved. */
  store?: string;
  /** Verify the store's checksums concurrently (default true). */
  verify?: boolean;
  /** Figures by history length, target popularity, and new or repeated targets (default false). */
  segments?: boolean;
}

/** Evaluates the run in a folder, with the weights chosen on validation. */
export async function evaluate(path: string, options: EvaluateOptions = {}): Promise<EvaluationReport> {
  const { part = 'test', exclude, verify = true, segments = false, ...opening } = options;
  using run = new OpenRun(path, opening);
  const { evaluation, ...rest } = run.config;
  const config = { ...rest, evaluation: { ...evaluation, ...(exclude && { exclude }) } };
  const { model, source, priors } = run;
  if (verify) await source.verify();
  try {
    const { report } = await evaluateModel({ model, source, config, part, segments, ...(priors && { priors }) });
    return report;
  } catch (error) {
    if (!verify) return await blameStore(error, source);
    throw error;
  }
}

export interface EvaluateModelInput {
  model: Model;
  source: SequenceSource;
  config: ResolvedConfig;
  part: 'validation' | 'test';
  /** Weights of the log's priors; the model alone when absent. */
  priors?: PriorWeights;
  segments?: boolean;
  /** The ranks that evaluate together; default: this one alone. */
  ranks?: RankGroups;
}

export interface Evaluated {
  report: EvaluationReport;
  /** Ranks of the model as used for recommending. */
  ranks: RankedCases;
}

/** On every rank the same. Collective. */
export async function evaluateModel(input: EvaluateModelInput): Promise<Evaluated> {
  const started = performance.now();
  const { model, source, config, part, priors, ranks = singleGroup() } = input;
  const { exclude, cutoffs, targets } = config.evaluation;
  const { maxLength } = model.definition;
  const which = { source, part, exclude, targets, ranks };
  const log = new LogPriors(source, part);
  const alone = await rankCases({ ...which, model, listLength: LIST_LENGTH });
  const full = { ...which, maxLength, device: model.device, log };
  const cases = priors
    ? await rankWithPriors({ ...full, weights: priors, ranked: model, listLength: LIST_LENGTH })
    : alone;
  const rankers: Record<string, RankedCases> = { model: cases, ...(priors && { 'model alone': alone }) };
  const { popularity, successors } = log;
  const baselines: Baseline[] = [
    popularity,
    new MarkovBaseline(popularity, successors),
    new RecencyBaseline(popularity),
  ];
  for (const baseline of baselines) rankers[baseline.name] = await rankBaseline({ ...which, baseline, maxLength });
  if (hasValidation(source)) {
    const { weights } = await fitPriors({
      device: model.device,
      source,
      maxLength,
      exclude,
      targets,
      metric: 'ndcg@10',
      ranks,
    });
    rankers['blend'] = await rankWithPriors({ ...full, weights });
  }
  const facts = caseFacts({ source, part, targets, maxLength });
  const report: EvaluationReport = {
    part,
    fingerprint: source.fingerprint,
    split: source.split.kind,
    exclude,
    users: source.users,
    items: source.items,
    cases: cases.ranks.length,
    excludedTargets: cases.ranks.filter(rank => rank > source.items).length,
    repeatedTargets: shareOf(facts.repeated),
    selfTargets: shareOf(facts.self),
    selfFirst: cases.selfFirst / Math.max(1, cases.ranks.length),
    metrics: Object.fromEntries(Object.entries(rankers).map(([name, of]) => [name, computeMetrics(of, cutoffs)])),
    ...(input.segments && {
      segments: segmentCases({ rankers, facts, targets: cases.targets, counts: log.counts }),
    }),
    ...(priors && { priors }),
    lists: listQuality({ k: LIST_LENGTH, lists: cases.lists, targets: cases.targets, popularity: log.counts }),
    seconds: (performance.now() - started) / 1000,
  };
  return { report, ranks: { ranks: cases.ranks, users: cases.users, items: cases.items } };
}

export function hasValidation({ split }: SequenceSource): boolean {
  return split.validationEnd.some((end, user) => end > Math.max(1, split.trainEnd[user]!));
}
