// The comparison as Markdown, and its MFU as a picture.

import { z } from 'zod';
import { formatCount } from '../../util/terminal.js';
import { PAPER_ROW, type PaperRow } from './row.js';
import { SECTIONS } from './sections.js';

export const PAPER_REPORT = z.strictObject({
  machine: z.strictObject({
    threads: z.number(),
    isa: z.string(),
    /** Measured when the run began. */
    peak_gflops: z.number(),
    cpu: z.string(),
    /** Processes that wanted a core when the run began, the mean of a minute. */
    load: z.number(),
  }),
  quick: z.boolean(),
  rows: z.array(PAPER_ROW),
});
export type PaperReport = z.infer<typeof PAPER_REPORT>;

/** On a busy machine times say little. */
function busy({ load, threads }: PaperReport['machine']): string {
  return load > 0.5 * threads ? ' (other work ran beside: compare ratios, not times)' : '';
}

export function markdown({ machine, quick, rows }: PaperReport): string {
  const cell = (text: string): string => text.replaceAll('|', String.raw`\|`);
  const parts = [
    '# The TurboGR paper, row by row',
    '',
    `Written by \`turbogr bench paper${quick ? ' --quick' : ''}\`. Every figure under "here" was measured by that command; where it could not be, the row says why.`,
    '',
    `Machine: ${machine.cpu}, ${machine.threads} threads (${machine.isa}), FMA peak ${formatCount(machine.peak_gflops)} GFLOP/s at the start of the run, load ${machine.load.toFixed(1)}${busy(machine)}. The paper: 32 to 128 Ascend 910B1.`,
  ];
  for (const { id, title, about } of SECTIONS) {
    const own = rows.filter(({ section }) => section === id);
    if (own.length === 0) continue;
    parts.push('', `## ${title}`, '', about, '', '| | paper | here |', '|---|---|---|');
    for (const row of own) {
      parts.push(
        `| ${cell(row.name)} | ${cell(row.paper ?? '')} | ${cell(row.ours ?? `not measured: ${row.missing}`)} |`,
      );
    }
    if (id === 'mfu') parts.push('', '![MFU of the ten models, paper and here](paper.svg)');
  }
  return `${parts.join('\n')}\n`;
}

const [BAR, GAP, LEFT, WIDTH] = [14, 12, 110, 560];

/** Two bars per model: the paper's MFU, and ours in the paper's counting. */
export function mfuPicture(rows: readonly PaperRow[]): string {
  const models = rows.filter(({ section, figures }) => section === 'mfu' && figures);
  const height = models.length * (2 * BAR + GAP) + 40;
  const most = Math.max(1, ...models.map(({ figures }) => figures!['mfu_paper']!));
  const x = (share: number): number => (share / most) * (WIDTH - LEFT - 60);
  const bars = models.map(({ name, paper, figures }, i) => {
    const top = 24 + i * (2 * BAR + GAP);
    const [theirs, ours] = [Number.parseFloat(paper!) / 100, figures!['mfu_paper']!];
    const bar = (at: number, share: number, color: string): string =>
      `<rect x="${LEFT}" y="${at}" width="${x(share).toFixed(1)}" height="${BAR}" fill="${color}"/>` +
      `<text x="${(LEFT + x(share) + 4).toFixed(1)}" y="${at + 11}">${(share * 100).toFixed(1)} %</text>`;
    const label = `<text x="${LEFT - 8}" y="${top + BAR + 4}" text-anchor="end">${name.split(' ')[0]}</text>`;
    return label + bar(top, theirs, '#9aa5b1') + bar(top + BAR, ours, '#2563eb');
  });
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" font-family="sans-serif" font-size="11">` +
    `<rect width="100%" height="100%" fill="white"/><text x="${LEFT}" y="14">MFU in the paper's counting: paper (grey), here (blue)</text>` +
    `${bars.join('')}</svg>\n`
  );
}
