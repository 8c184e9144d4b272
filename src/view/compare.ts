// Compares two runs: their configs and their results.

import type { PairedReport } from '../eval/paired.js';
import { flatConfig, metricNames } from './figures.js';
import type { RunView } from './run-view.js';

export interface ComparedMetric {
  name: string;
  /** Value and half width of the 95 % interval of each run. */
  a: { value: number; margin: number | null } | null;
  b: { value: number; margin: number | null } | null;
  /** Paired difference b - a by user, if the ranks of both are known. */
  paired: PairedReport['metrics'][string] | null;
}

export interface Comparison {
  a: RunView;
  b: RunView;
  /** Figures of runs with different fingerprints are not comparable. */
  sameData: boolean;
  /** Config keys with both values; null if a run does not have the key. */
  differences: { key: string; a: string | null; b: string | null }[];
  metrics: ComparedMetric[];
  /** Cases that b ranks higher, lower, the same. */
  cases: Pick<PairedReport, 'users' | 'cases' | 'better' | 'worse' | 'equal'> | null;
}

export function compareViews(a: RunView, b: RunView, paired?: PairedReport): Comparison {
  const [ofA, ofB] = [a.report?.test, b.report?.test];
  const names = ofA && ofB ? metricNames(ofA).filter(name => ofB.metrics['model']?.[name]) : [];
  return {
    a,
    b,
    sameData: a.fingerprint === b.fingerprint,
    differences: configDifferences(a, b),
    metrics: names.map(name => ({
      name,
      a: ofA?.metrics['model']?.[name] ?? null,
      b: ofB?.metrics['model']?.[name] ?? null,
      paired: paired?.metrics[name] ?? null,
    })),
    cases: paired
      ? { users: paired.users, cases: paired.cases, better: paired.better, worse: paired.worse, equal: paired.equal }
      : null,
  };
}

function configDifferences(a: RunView, b: RunView): Comparison['differences'] {
  const [ofA, ofB] = [new Map(flatConfig(a.config)), new Map(flatConfig(b.config))];
  const keys = new Set([...ofA.keys(), ...ofB.keys()]);
  return [...keys]
    .filter(key => ofA.get(key) !== ofB.get(key))
    .map(key => ({ key, a: ofA.get(key) ?? null, b: ofB.get(key) ?? null }));
}

/** Rows of a table: metric, both figures, their difference with its interval, and whether it could be chance. */
export function metricRows({ metrics }: Comparison): string[][] {
  const figure = (estimate: ComparedMetric['a']): string =>
    estimate ? `${estimate.value.toFixed(4)} ± ${estimate.margin?.toFixed(4) ?? '?'}` : '–';
  const signed = (value: number): string => `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(4)}`;
  return metrics.map(({ name, a, b, paired }) => {
    const difference = a && b ? signed(b.value - a.value) : '–';
    if (!paired) return [name, figure(a), figure(b), difference, '', ''];
    const { low, high } = paired.difference;
    const p = paired.p < 0.001 ? 'p < 0.001' : `p = ${paired.p.toFixed(3)}`;
    const meaning = paired.significant
      ? paired.difference.value > 0
        ? 'b is better'
        : 'a is better'
      : 'could be chance';
    return [name, figure(a), figure(b), difference, `${signed(low)} … ${signed(high)}`, `${p}, ${meaning}`];
  });
}

export const METRIC_HEADER = ['', 'a', 'b', 'b − a', '95 % interval', ''];
