// `report.html` of a run: one self-contained file, light and dark.

import { formatBytes, formatCount, formatSeconds, formatShare, formatShort } from '../util/format.js';
import { alertsBesideVerdict } from './alerts.js';
import { flatConfig, keyFigures, machineRows, rankRows, testRows } from './figures.js';
import { escapeHtml, htmlBars, htmlTable } from './html.js';
import { nextSteps } from './next-steps.js';
import type { RunView } from './run-view.js';
import { lineChart } from './svg-chart.js';
import { THEME_CSS } from './theme.js';

const CSS = `*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1180px;margin:0 auto;padding:20px 16px 48px}h1{font-size:22px;margin:0}h2{font-size:16px;margin:28px 0 10px}p{margin:6px 0}
.muted{color:var(--muted)}code{font:13px ui-monospace,monospace;overflow-wrap:anywhere}a{color:var(--accent)}
.panel,figure{background:var(--panel);border:1px solid var(--line);border-radius:8px;padding:12px 14px;margin:0}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,420px),1fr));gap:12px}
.keys{display:grid;grid-template-columns:repeat(auto-fit,minmax(130px,1fr));gap:10px 18px;margin-top:14px}.keys b{display:block;font-size:19px;font-weight:600}
.alert{border-left:4px solid var(--muted);margin:8px 0}.alert.error{border-color:var(--bad)}.alert.warning{border-color:var(--warn)}
svg{width:100%;height:auto;display:block}.title{font-size:13px;font-weight:600;fill:var(--ink)}.tick{font-size:11px;fill:var(--muted)}
.grid{stroke:var(--line);fill:none}.line{fill:none;stroke:var(--c);stroke-width:1.8;stroke-linejoin:round}.band{fill:var(--c);opacity:.16}.dot{fill:var(--c)}
.rule{stroke:var(--c);stroke-width:1.4;stroke-dasharray:6 4;fill:none}.s0{--c:var(--c0)}.s1{--c:var(--c1)}.s2{--c:var(--c2)}.s3{--c:var(--c3)}.s4{--c:var(--c4)}.s5{--c:var(--c5)}
figcaption{display:flex;flex-wrap:wrap;gap:4px 14px;font-size:12px;color:var(--muted)}.key{display:inline-block;width:14px;height:3px;background:var(--c);margin-right:5px;vertical-align:middle}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums}th,td{padding:3px 12px 3px 0;text-align:right;white-space:nowrap;border-bottom:1px solid var(--line)}
th:first-child{text-align:left}tbody th{font-weight:400}.best{font-weight:700}.left td{text-align:left;white-space:normal}
.bar{display:grid;grid-template-columns:minmax(110px,240px) 1fr 120px;gap:10px;align-items:center;font-size:13px}.bar .n{text-align:right;font-variant-numeric:tabular-nums}
.track i{display:block;height:9px;border-radius:3px;background:var(--c0)}details summary{cursor:pointer}.two{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,420px),1fr));gap:12px}
`;

/** A complete page with the given sections. */
export function htmlPage(title: string, body: string): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>${escapeHtml(title)}</title><style>${THEME_CSS}${CSS}</style></head>
<body><main>
${body}
</main></body></html>
`;
}

export function reportPage(view: RunView): string {
  const sections = [head(view), charts(view), test(view), next(view), costs(view), settings(view)];
  return htmlPage(`TurboGR: ${view.path}`, sections.filter(section => section !== '').join('\n'));
}

function head(view: RunView): string {
  const { verdict } = view.report ?? {};
  const figures = keyFigures(view).map(
    ([name, value]) => `<div><span class="muted">${escapeHtml(name)}</span><b>${escapeHtml(value)}</b></div>`,
  );
  const lines = (verdict?.lines ?? []).map(
    line => `<p>${escapeHtml(`${line[0]?.toUpperCase()}${line.slice(1)}.`)}</p>`,
  );
  const alerts = alertsBesideVerdict(view).map(
    ({ level, text, remedy }) =>
      `<div class="panel alert ${level}">${escapeHtml(text)}<br><span class="muted">${escapeHtml(remedy)}</span></div>`,
  );
  const data = view.data
    ? `${formatCount(view.data.users)} users, ${formatCount(view.data.items)} items, ${formatCount(view.data.trainTokens)} tokens per epoch. `
    : '';
  return `<h1>${escapeHtml(view.path)}</h1>
<p class="muted">${escapeHtml(view.model)}, ${escapeHtml(view.state)}${view.reason ? ` (${escapeHtml(view.reason)})` : ''}. ${data}Started ${escapeHtml((view.started ?? '').slice(0, 19).replace('T', ' '))} UTC.</p>
<div class="panel">${lines.join('')}<div class="keys">${figures.join('')}</div></div>
${alerts.join('\n')}`;
}

export function runCharts(view: RunView): string[] {
  const { steps, validations, baselines, metric, negatives, epochSeries } = view;
  const decimals = (digits: number) => (value: number) => value.toFixed(digits);
  return [
    lineChart({
      title: 'Training loss',
      xName: 'step',
      format: decimals(2),
      series: [
        { name: 'step', x: steps.step, y: steps.loss, band: { low: steps.lossLow, high: steps.lossHigh } },
        {
          name: 'mean of the epoch',
          x: epochSeries.map(({ step }) => step),
          y: epochSeries.map(({ loss }) => loss),
          dots: true,
        },
      ],
    }),
    lineChart({
      title: `Validation ${metric} and baselines`,
      xName: 'epoch',
      format: decimals(3),
      fromZero: metric !== 'loglik',
      series: [
        {
          name: view.model,
          x: validations.map(({ epoch }) => epoch + 1),
          y: validations.map(({ value }) => value),
          dots: true,
        },
      ],
      lines: Object.entries(baselines ?? {}).map(([name, value]) => ({ name, value })),
    }),
    lineChart({
      title: 'Tokens per second',
      xName: 'step',
      format: formatShort,
      fromZero: true,
      series: [{ name: 'tokens/s', x: steps.step, y: steps.tokensPerSecond }],
    }),
    lineChart({
      title: 'MFU: share of the FMA peak',
      xName: 'step',
      format: value => formatShare(value, 0),
      fromZero: true,
      series: [
        { name: 'useful work', x: steps.step, y: steps.mfu },
        { name: 'as the TurboGR paper counts', x: steps.step, y: steps.mfuPaper },
      ],
    }),
    lineChart({
      title: 'Learning rate',
      xName: 'step',
      format: value => value.toExponential(1),
      fromZero: true,
      series: [{ name: 'lr', x: steps.step, y: steps.lr }],
    }),
    lineChart({
      title: 'Negatives per token',
      xName: 'step',
      format: formatShort,
      fromZero: true,
      series: [
        { name: 'effective', x: negatives.step, y: negatives.effective },
        { name: 'masked', x: negatives.step, y: negatives.masked },
        { name: 'repeated', x: negatives.step, y: negatives.repeated },
      ],
    }),
  ].filter(chart => chart !== '');
}

function charts(view: RunView): string {
  return `<h2>Curves</h2><div class="charts">${runCharts(view).join('\n')}</div>`;
}

function test({ report }: RunView): string {
  if (!report?.test) return '';
  const { test: tested } = report;
  const { header, rows } = testRows(tested);
  const { lists } = tested;
  return `<h2>Test: the whole catalogue ranked</h2><div class="panel">${htmlTable(header, rows)}
<p class="muted">${formatCount(tested.cases)} cases, ${formatCount(tested.items)} items; left out of the ranking: ${escapeHtml(tested.exclude)}; ± is a 95 % interval over users.
Top ${lists.k}: ${formatShare(lists.coverage, 1)} of the catalogue used, ${formatShare(lists.popularShare, 1)} of the slots to its most popular tenth (${formatShare(lists.popularShareOfTargets, 1)} of the targets).</p></div>`;
}

function next(view: RunView): string {
  const items = nextSteps(view).map(
    ({ text, command }) => `<li>${escapeHtml(text)}${command ? `<br><code>${escapeHtml(command)}</code>` : ''}</li>`,
  );
  return `<h2>What to try next</h2><div class="panel"><ol>${items.join('')}</ol></div>`;
}

function costs(view: RunView): string {
  const { samples, time } = view;
  const ranks = rankRows(view);
  const parts = [
    panel('Wall time', [
      { name: 'training steps', value: time.training, text: formatSeconds(time.training) },
      { name: 'validation', value: time.validation, text: formatSeconds(time.validation) },
      { name: 'checkpoints', value: time.checkpoints, text: formatSeconds(time.checkpoints) },
      { name: 'other (start, pauses, lost steps)', value: time.other, text: formatSeconds(time.other) },
    ]),
    ...(ranks ? [`<div class="panel"><b>Steps by rank</b>${htmlTable(ranks.header, ranks.rows)}</div>`] : []),
    ...samples.slice(0, 1).flatMap(({ ops, memory, step, milliseconds }) => [
      panel(
        `A step by op (step ${step}, ${milliseconds.toFixed(1)} ms)`,
        ops.slice(0, 14).map(({ op, stage, milliseconds: ms }) => ({
          name: `${stage}: ${op}`,
          value: ms,
          text: `${ms.toFixed(2)} ms`,
        })),
      ),
      panel(
        'Memory by owner',
        Object.entries(memory).map(([name, value]) => ({ name, value, text: formatBytes(value) })),
      ),
    ]),
  ];
  return `<h2>Time and memory</h2><div class="two">${parts.join('\n')}</div>`;
}

function panel(title: string, bars: Parameters<typeof htmlBars>[0]): string {
  return `<div class="panel"><b>${escapeHtml(title)}</b>${htmlBars(bars)}</div>`;
}

function settings(view: RunView): string {
  const identity: [string, string][] = [
    ['weights', view.digest ?? '–'],
    ['data fingerprint', view.fingerprint],
    ...machineRows(view),
    ...view.resumes.map(({ time, step, from }): [string, string] => [
      'resumed',
      `${time} at step ${step} from ${from}`,
    ]),
  ];
  const rows = (pairs: [string, string][]) => htmlTable(['', ''], pairs).replace('<table>', '<table class="left">');
  return `<h2>Identity and machine</h2><div class="panel">${rows(identity)}</div>
<h2>Config</h2><div class="panel"><details><summary>${flatConfig(view.config).length} keys</summary>${rows(flatConfig(view.config))}</details></div>`;
}
