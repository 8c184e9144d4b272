// `report.md` of a run: the page as Markdown, for a terminal, a pull request or a notebook.

import { curve } from '../util/curve.js';
import { formatBytes, formatSeconds, formatShare } from '../util/format.js';
import { alertsBesideVerdict } from './alerts.js';
import { flatConfig, keyFigures, machineRows, rankRows, testRows } from './figures.js';
import { nextSteps } from './next-steps.js';
import type { RunView } from './run-view.js';

export function markdownTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map(cell => cell.replaceAll('|', '\\|').replace(/^\*(.*)$/, '**$1**')).join(' | ')} |`;
  const rule = `|${header.map((_, c) => (c === 0 ? '---' : '---:')).join('|')}|`;
  return [line(header), rule, ...rows.map(line)].join('\n');
}

export function reportMarkdown(view: RunView): string {
  const { report, time, samples } = view;
  const verdict = report?.verdict?.lines.map(line => `${line[0]?.toUpperCase()}${line.slice(1)}.`) ?? [];
  const alerts = alertsBesideVerdict(view).map(({ text, remedy }) => `- ${text} ${remedy}`);
  const test = report?.test && testRows(report.test);
  const steps = nextSteps(view).map(({ text, command }, i) => `${i + 1}. ${text}${command ? ` \`${command}\`` : ''}`);
  const [sample] = samples;
  const ranks = rankRows(view);
  const sections = [
    `# ${view.path}`,
    [`${view.model}, ${view.state}${view.reason ? ` (${view.reason})` : ''}.`, ...verdict].join(' '),
    alerts.join('\n'),
    markdownTable(['figure', 'value'], keyFigures(view)),
    curves(view),
    test ? `## Test\n\n${markdownTable(test.header, test.rows)}\n\n± is a 95 % interval over users.` : '',
    `## What to try next\n\n${steps.join('\n')}`,
    `## Time\n\n${markdownTable(
      ['', 'time', 'share'],
      Object.entries({
        training: time.training,
        validation: time.validation,
        checkpoints: time.checkpoints,
        other: time.other,
      }).map(([name, seconds]) => [
        name,
        formatSeconds(seconds),
        formatShare(time.wall > 0 ? seconds / time.wall : 0, 1),
      ]),
    )}`,
    ranks ? `## Steps by rank\n\n${markdownTable(ranks.header, ranks.rows)}` : '',
    sample
      ? `## A step by op (step ${sample.step})\n\n${markdownTable(
          ['op', 'stage', 'ms'],
          sample.ops.slice(0, 14).map(({ op, stage, milliseconds }) => [op, stage, milliseconds.toFixed(2)]),
        )}\n\n${markdownTable(
          ['memory of', 'size'],
          Object.entries(sample.memory).map(([name, bytes]) => [name, formatBytes(bytes)]),
        )}`
      : '',
    `## Identity and machine\n\n${markdownTable(
      ['', ''],
      [['weights', view.digest ?? '–'], ['data fingerprint', view.fingerprint], ...machineRows(view)],
    )}`,
    `## Config\n\n${markdownTable(['key', 'value'], flatConfig(view.config))}`,
  ];
  return `${sections.filter(section => section !== '').join('\n\n')}\n`;
}

function curves({ steps, validations, metric }: RunView): string {
  const drawn = [
    ...(steps.loss.length > 1 ? [curve({ title: 'training loss by step', values: steps.loss })] : []),
    ...(validations.length > 1
      ? [curve({ title: `validation ${metric} by epoch`, values: validations.map(({ value }) => value) })]
      : []),
  ];
  return drawn.length === 0 ? '' : `## Curves\n\n\`\`\`\n${drawn.join('\n\n')}\n\`\`\``;
}
