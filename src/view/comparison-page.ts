// A comparison of two runs as one self-contained page.

import { formatShare, formatShort } from '../util/format.js';
import { type Comparison, METRIC_HEADER, metricRows } from './compare.js';
import { comparedFigures } from './figures.js';
import { escapeHtml, htmlTable } from './html.js';
import { htmlPage } from './report-page.js';
import type { RunView } from './run-view.js';
import { type ChartSeries, lineChart } from './svg-chart.js';

export const DIFFERENT_DATA =
  'These runs have different fingerprints: they were trained and tested on different events. Their figures cannot be compared.';

export function comparisonPage(comparison: Comparison): string {
  const { a, b, sameData, differences, cases } = comparison;
  const warning = sameData ? '' : `<div class="panel alert error">${DIFFERENT_DATA}</div>`;
  const counted = cases
    ? `<p class="muted">${cases.cases} cases of ${cases.users} users: b ranks ${cases.better} higher, ${cases.worse} lower, ${cases.equal} the same.</p>`
    : '';
  return htmlPage(
    `TurboGR: ${a.path} and ${b.path}`,
    `<h1>Comparison</h1><p>a: <code>${escapeHtml(a.path)}</code> (${escapeHtml(a.model)})<br>b: <code>${escapeHtml(b.path)}</code> (${escapeHtml(b.model)})</p>${warning}
<h2>Config</h2><div class="panel">${
      differences.length === 0
        ? 'The same in every key.'
        : htmlTable(
            ['key', 'a', 'b'],
            differences.map(({ key, a: left, b: right }) => [key, left ?? '–', right ?? '–']),
          )
    }</div>
<h2>Curves</h2><div class="charts">${comparedCharts(a, b).join('\n')}</div>
<h2>Test</h2><div class="panel">${htmlTable(METRIC_HEADER, metricRows(comparison))}${counted}</div>
<h2>Figures</h2><div class="panel">${htmlTable(['', 'a', 'b'], comparedFigures(a, b))}</div>`,
  );
}

function comparedCharts(a: RunView, b: RunView): string[] {
  const both = (of: (view: RunView) => Omit<ChartSeries, 'name'>): ChartSeries[] => [
    { name: `a: ${a.path}`, ...of(a) },
    { name: `b: ${b.path}`, ...of(b) },
  ];
  const lines = a.fingerprint === b.fingerprint ? Object.entries(a.baselines ?? {}) : [];
  const charts = [
    lineChart({
      title: 'Training loss, mean of the epoch',
      xName: 'epoch',
      format: value => value.toFixed(2),
      series: both(view => ({
        x: view.epochSeries.map(({ epoch }) => epoch + 1),
        y: view.epochSeries.map(({ loss }) => loss),
        dots: true,
      })),
    }),
    a.metric === b.metric
      ? lineChart({
          title: `Validation ${a.metric}`,
          xName: 'epoch',
          format: value => value.toFixed(3),
          fromZero: a.metric !== 'loglik',
          series: both(view => ({
            x: view.validations.map(({ epoch }) => epoch + 1),
            y: view.validations.map(({ value }) => value),
            dots: true,
          })),
          lines: lines.map(([name, value]) => ({ name, value })),
        })
      : '',
    lineChart({
      title: 'Tokens per second',
      xName: 'step',
      format: formatShort,
      fromZero: true,
      series: both(({ steps }) => ({ x: steps.step, y: steps.tokensPerSecond })),
    }),
    lineChart({
      title: 'MFU, useful work',
      xName: 'step',
      format: value => formatShare(value, 0),
      fromZero: true,
      series: both(({ steps }) => ({ x: steps.step, y: steps.mfu })),
    }),
  ];
  return charts.filter(chart => chart !== '');
}
