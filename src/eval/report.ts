// A readable evaluation report: the model next to the baselines, every figure with its interval, and the conditions of the
// evaluation.

import { formatCount, formatShare, table } from '../util/terminal.js';
import type { ListQuality } from './list-quality.js';
import type { Metrics } from './metrics.js';
import type { PriorWeights } from '../config/prior-weights.js';
import { type Segment, SEGMENT_METRICS } from './segments.js';

export interface EvaluationReport {
  part: 'validation' | 'test';
  /** SHA-256 of the split: figures under different fingerprints are not comparable. */
  fingerprint: string;
  split: string;
  exclude: 'history' | 'input' | 'none';
  users: number;
  items: number;
  cases: number;
  /** Cases whose target is excluded from the ranking and therefore counts as a miss. */
  excludedTargets: number;
  /** Share of targets that are among the user's earlier items, and that equal the last one. */
  repeatedTargets: number;
  selfTargets: number;
  /** Share of cases in which the model ranks the last input item first, without exclusions. */
  selfFirst: number;
  /**
   * By ranker: `model` as it recommends, `model alone` without priors if it has any, `popularity`, `first-order Markov`,
   * `recency`, and `blend`, the best weighted sum of the three on validation.
   */
  metrics: Record<string, Metrics>;
  /** By history length, target popularity, and new or repeated targets; if requested. */
  segments?: Segment[];
  /** Weights of the log's priors in the model's scores. */
  priors?: PriorWeights;
  lists: ListQuality;
  seconds: number;
}

const EXCLUDED = {
  history: "all of a user's earlier items left out of the ranking",
  input: 'the items that the model read left out of the ranking',
  none: 'nothing left out of the ranking',
};

export function describeEvaluation(report: EvaluationReport): string {
  const rankers = Object.keys(report.metrics);
  const names = Object.keys(report.metrics[rankers[0]!]!).filter(name => !isRepeat(report, name));
  const cell = ({ value, margin }: { value: number; margin: number }) =>
    `${value.toFixed(4)} ± ${Number.isFinite(margin) ? margin.toFixed(4) : '?'}`;
  const rows = names.map(name => [name, ...rankers.map(ranker => cell(report.metrics[ranker]![name]!))]);
  const { lists } = report;
  const excludedTargets =
    report.excludedTargets === 0
      ? ''
      : `\n${formatCount(report.excludedTargets)} targets are among the items left out and count as misses`;
  return [
    `${report.part}: ${formatCount(report.cases)} cases, ranked in the whole catalogue of ${formatCount(report.items)}, ` +
      `${EXCLUDED[report.exclude]}${excludedTargets}`,
    `split ${report.split}, fingerprint ${report.fingerprint.slice(0, 16)}; ± is a 95 % interval over users`,
    '',
    table(['', ...rankers], rows),
    '',
    `top ${lists.k}: ${formatShare(lists.coverage, 1)} of the catalogue used; ` +
      `${formatShare(lists.popularShare, 1)} of the slots go to the most popular tenth of it ` +
      `(${formatShare(lists.popularShareOfTargets, 1)} of the true targets do)`,
    `${formatShare(report.repeatedTargets, 1)} of the targets are repeats; the item just seen ranks first in ` +
      `${formatShare(report.selfFirst, 1)} of the cases (${formatShare(report.selfTargets, 1)} of the targets are it)`,
    ...(report.segments ? ['', describeSegments(report.segments)] : []),
  ].join('\n');
}

/** The model with bootstrap intervals, and the best other ranker by NDCG@10. */
function describeSegments(segments: readonly Segment[]): string {
  const rows = segments.map(({ by, name, cases, model, others }) => {
    const best = Object.entries(others)
      .filter(([ranker]) => ranker !== 'model alone')
      .sort(([, a], [, b]) => b['ndcg@10']! - a['ndcg@10']!)[0];
    return [
      `${by}: ${name}`,
      formatCount(cases),
      ...SEGMENT_METRICS.map(metric => {
        const { value, low, high } = model[metric]!;
        return `${value.toFixed(4)} (${low.toFixed(4)} to ${high.toFixed(4)})`;
      }),
      best ? `${best[1]['ndcg@10']!.toFixed(4)} ${best[0]}` : '',
    ];
  });
  return table(['segment', 'cases', ...SEGMENT_METRICS, 'best baseline, ndcg@10'], rows);
}

/** Recall equals HR if every user has one case; printing both would only look like more evidence. */
function isRepeat(report: EvaluationReport, name: string): boolean {
  if (!name.startsWith('recall@')) return false;
  const hr = name.replace('recall', 'hr');
  return Object.values(report.metrics).every(metrics => metrics[name]!.value === metrics[hr]!.value);
}
