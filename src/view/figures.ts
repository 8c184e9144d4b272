// Formatted figures of a run, shared by all reports and the dashboard.

import type { StepShares } from '../events/event.js';
import { formatBytes, formatCount, formatSeconds, formatShare, formatShort } from '../util/format.js';
import type { TestReport } from './final-report.js';
import type { RunView } from './run-view.js';

/** The total number of steps is an estimate: batches are not equally full. */
function stepsText({ step, totalSteps, state }: RunView): string {
  const ended = totalSteps === null || state === 'finished';
  return ended ? formatCount(step) : `${formatCount(step)} / ~${formatCount(totalSteps)}`;
}

/** Name and value, for the head of a page; figures of ranks and of staleness only if a run has them. */
export function keyFigures(view: RunView): [name: string, value: string][] {
  const { time, steps, report, validations, metric } = view;
  const best = validations.reduce((most, { value }) => Math.max(most, value), Number.NEGATIVE_INFINITY);
  const training = Math.max(1e-9, time.training);
  const tokens = view.epochSeries.reduce((sum, epoch) => sum + epoch.tokens, 0);
  const seconds = view.epochSeries.reduce((sum, epoch) => sum + epoch.seconds, 0);
  const mfu =
    seconds > 0 ? view.epochSeries.reduce((sum, epoch) => sum + epoch.mfu * epoch.seconds, 0) / seconds : null;
  const mean = (values: readonly (number | null)[]): number | null => {
    const known = values.filter(value => value !== null);
    return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length;
  };
  const paper = mean(steps.mfuPaper);
  return [
    ['steps', stepsText(view)],
    ['loss', steps.loss.at(-1)?.toFixed(4) ?? '–'],
    [`best ${metric}`, Number.isFinite(best) ? best.toFixed(4) : '–'],
    ['tokens/s', seconds > 0 ? formatShort(tokens / seconds) : formatShort(mean(steps.tokensPerSecond) ?? 0)],
    ['MFU useful', formatShare(mfu ?? mean(steps.mfu) ?? 0, 1)],
    ["MFU, paper's count", paper === null ? '–' : formatShare(paper, 1)],
    ...rankFigures(view),
    ['effective training time', time.wall > 0 ? formatShare(training / time.wall, 1) : '–'],
    ['wall clock', formatSeconds(report?.seconds ?? time.wall)],
  ];
}

/** Key figures of two runs, by name: name, that of a, that of b. */
export function comparedFigures(a: RunView, b: RunView): string[][] {
  const [ofA, ofB] = [new Map(keyFigures(a)), new Map(keyFigures(b))];
  const names = new Set([...ofA.keys(), ...ofB.keys()]);
  return [...names].map(name => [name, ofA.get(name) ?? '–', ofB.get(name) ?? '–']);
}

function rankFigures({ ranks, tokenSpread, rowsAhead }: RunView): [name: string, value: string][] {
  const { stale, resent } = rowsAhead;
  const found: [name: string, value: string][] = [];
  if (ranks) found.push(['computing ratio', formatShare(ranks.shares.computing, 1)]);
  if (ranks) found.push(['exposed, waiting, free', restText(ranks.shares)]);
  if (tokenSpread !== null) found.push(['token spread of ranks', formatShare(tokenSpread, 1)]);
  if (stale !== null) found.push(['item rows read stale', formatShare(stale, 1)]);
  else if (resent !== null) found.push(['item rows read stale', `none, ${formatShare(resent, 1)} sent again`]);
  return found;
}

function restText({ exposed, waiting, free }: StepShares): string {
  return [exposed, waiting, free].map(share => formatShare(share, 1)).join(', ');
}

/** With more ranks, only the slowest are shown. */
const MOST_RANKS = 32;

/** How step time divides, by rank; undefined for a single rank. */
export function rankRows({ ranks }: RunView): { header: string[]; rows: string[][] } | undefined {
  if (!ranks || ranks.ranks.length < 2) return undefined;
  const numbered = ranks.ranks.map((row, rank) => ({ ...row, rank }));
  const shown = numbered.length > MOST_RANKS ? numbered.sort((a, b) => a.waiting - b.waiting) : numbered;
  const rows = shown.slice(0, MOST_RANKS).map(({ rank, computing, exposed, waiting, free, tokens }) => {
    const shares = [computing, exposed, waiting, free].map(share => formatShare(share, 1));
    return [String(rank), ...shares, formatCount(Math.round(tokens))];
  });
  return { header: ['rank', 'computing', 'exposed', 'waiting', 'free', 'tokens per step'], rows };
}

/** Metrics of a test without duplicates: recall equals HR if every user has one case. */
export function metricNames({ metrics }: TestReport): string[] {
  const [first] = Object.values(metrics);
  return Object.keys(first ?? {}).filter(name => {
    const hr = name.replace('recall', 'hr');
    return hr === name || Object.values(metrics).some(ranker => ranker[name]?.value !== ranker[hr]?.value);
  });
}

/** The model and every baseline by metric, with intervals; `*` before the best of a row. */
export function testRows(test: TestReport): { header: string[]; rows: string[][] } {
  const rankers = Object.keys(test.metrics);
  const rows = metricNames(test).map(name => {
    const values = rankers.map(ranker => test.metrics[ranker]?.[name]);
    const most = Math.max(...values.map(estimate => estimate?.value ?? 0));
    const cells = values.map(estimate => {
      if (!estimate) return '–';
      const text = `${estimate.value.toFixed(4)} ± ${estimate.margin === null ? '?' : estimate.margin.toFixed(4)}`;
      return estimate.value === most && most > 0 ? `*${text}` : text;
    });
    return [name, ...cells];
  });
  return { header: ['', ...rankers], rows };
}

/** Dotted keys and their values. */
export function flatConfig(config: object, under = ''): [key: string, value: string][] {
  return Object.entries(config).flatMap(([key, value]: [string, unknown]): [string, string][] =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? flatConfig(value, `${under}${key}.`)
      : [[`${under}${key}`, typeof value === 'string' ? value : (JSON.stringify(value) ?? '')]],
  );
}

export function machineRows({ machine, threads, peakFlops }: RunView): [name: string, value: string][] {
  if (!machine) return [];
  return [
    ['processor', `${machine.cpu}, ${machine.cores} cores, ${machine.isa} kernels, ${threads ?? '?'} threads`],
    ['FMA peak', peakFlops === null ? '–' : `${(peakFlops / 1e9).toFixed(1)} GFLOP/s, measured at the start`],
    ['memory', formatBytes(machine.memoryBytes)],
    ['system', `${machine.system}, Node ${machine.node}`],
  ];
}
