// The comparison as Markdown.

import { formatCount, formatSeconds, formatShare } from '../../util/terminal.js';
import type { MeasuredPart, PaperReport } from './report.js';
import type { Section } from './row.js';
import { SECTIONS } from './sections.js';

/** Above this load by other processes, times are unreliable. */
const QUIET = 0.1;

const PICTURES: Readonly<Record<string, string>> = {
  mfu: '![MFU of the ten models, paper and here](paper.svg)',
  ladder: '![Time per token, one switch at a time](paper-ladder.svg)',
};

export function markdown({ machine, parts }: PaperReport): string {
  const lines = [
    '# The TurboGR paper, row by row',
    '',
    'Written by `turbogr bench paper`. Every figure under "here" was measured by that command on one machine; rows without a measurement say why. The paper: arXiv 2605.13433, 32 to 128 Ascend 910B1.',
    '',
    `Machine: ${machine.cpu}, ${machine.threads} threads (${machine.isa}).`,
  ];
  for (const section of SECTIONS) {
    lines.push('', `## ${section.title}`, '', section.about, '', ...sectionLines(section, parts));
  }
  return `${lines.join('\n')}\n`;
}

function sectionLines({ id, parts: wanted }: Section, parts: readonly MeasuredPart[]): string[] {
  const found = wanted.map(({ id: part }) => parts.find(known => known.section === id && known.part === part));
  const cell = (text: string): string => text.replaceAll('|', String.raw`\|`);
  const missing = `\`turbogr bench paper --only ${id}\` has not measured it yet`;
  const rows = wanted.flatMap(({ id: name, paper }, at) => found[at]?.rows ?? [{ name, paper, missing }]);
  const table = rows.map(row => {
    const { name, paper = '', ours, missing: why } = row;
    return `| ${cell(name)} | ${cell(paper)} | ${cell(ours ?? `not measured: ${why}`)} |`;
  });
  const measured = found.filter(part => part !== undefined);
  const after = measured.length === 0 ? [] : [...(PICTURES[id] ? ['', PICTURES[id]] : []), '', conditions(measured)];
  return ['| | paper | here |', '|---|---|---|', ...table, ...after];
}

/** Form, time, peak, and the load by other processes. */
function conditions(parts: readonly MeasuredPart[]): string {
  const quick = parts.filter(part => part.quick).length;
  const form = quick === 0 ? 'Whole form' : quick === parts.length ? 'Quick form' : 'Partly in the quick form';
  const seconds = parts.reduce((sum, part) => sum + part.seconds, 0);
  const peaks = parts.map(part => part.peak_gflops);
  const [low, high] = [Math.min(...peaks), Math.max(...peaks)].map(formatCount);
  const others = Math.max(...parts.map(part => part.others));
  const note =
    others > QUIET
      ? `other work took up to ${formatShare(others, 0)} of the cores: compare ratios, not times`
      : 'the machine was idle otherwise';
  return `*${form}, ${formatSeconds(seconds)}; FMA peak ${low === high ? low : `${low} to ${high}`} GFLOP/s; ${note}.*`;
}
