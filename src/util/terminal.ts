// Terminal output: numbers, bars, aligned tables, colour, a progress line. No policy, no logging.

import { styleText } from 'node:util';
export { formatCount, formatCounted, formatSeconds, formatShare } from './format.js';
import { cutTo, padTo, printable, textWidth, wrapLine } from './text-width.js';

const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/** A horizontal bar that fills `share` of `width` cells, to an eighth of a cell. */
export function bar(share: number, width: number): string {
  const eighths = Math.round(Math.max(0, Math.min(1, share)) * width * 8);
  return '█'.repeat(Math.floor(eighths / 8)) + (EIGHTHS[eighths % 8] ?? '');
}

/**
 * Formats rows as aligned columns: text left, numbers (and similar) right. Cells may contain anything, such as ids of a log:
 * control characters are escaped.
 */
export function table(
  header: readonly string[],
  cells: readonly (readonly string[])[],
  width = process.stdout.isTTY && process.stdout.columns > 0 ? process.stdout.columns : Number.POSITIVE_INFINITY,
): string {
  const rows = cells.map(row => row.map(printable));
  const widths = header.map((name, c) => Math.max(textWidth(name), ...rows.map(row => textWidth(row[c] ?? ''))));
  const numeric = header.map((_, c) => rows.length > 0 && rows.every(row => /^[-+]?[\d.,]/.test(row[c] ?? '')));
  const line = (row: readonly string[], columns: readonly number[]): string =>
    columns
      .map(c => padTo(row[c] ?? '', widths[c] ?? 0, numeric[c] ? 'right' : 'left'))
      .join('  ')
      .trimEnd();
  return columnGroups(widths, width)
    .map(group => {
      const part = (row: readonly string[]): string => line(row, group);
      return [part(header), ...rows.map(part)].join('\n');
    })
    .join('\n\n');
}

/** Splits columns into groups that fit the width; each group repeats the first column, which names the rows. */
function columnGroups(widths: readonly number[], room: number): number[][] {
  const groups: number[][] = [];
  let used = 0;
  for (let c = 1; c < widths.length; c++) {
    used += 2 + widths[c]!;
    if (groups.length === 0 || used > room) {
      groups.push([0]);
      used = widths[0]! + 2 + widths[c]!;
    }
    groups.at(-1)!.push(c);
  }
  return groups.length === 0 ? [[0]] : groups;
}

type Colour = 'red' | 'green' | 'yellow' | 'cyan' | 'bold' | 'dim';

/** Colour on terminals only; NO_COLOR and FORCE_COLOR override. */
export function hasColour(stream: { isTTY: boolean }, env: NodeJS.ProcessEnv = process.env): boolean {
  const { NO_COLOR: no, FORCE_COLOR: force } = env;
  if (no !== undefined && no !== '') return false;
  if (force !== undefined && force !== '') return force !== '0' && force !== 'false';
  return stream.isTTY && env['TERM'] !== 'dumb';
}

export function coloured(text: string, colour: Colour, stream: NodeJS.WriteStream = process.stdout): string {
  return hasColour(stream) ? styleText(colour, text) : text;
}

/** Wraps text at words on a narrow terminal; table lines are left alone. */
export function fitted(text: string, stream: NodeJS.WriteStream = process.stdout): string {
  if (!stream.isTTY || !(stream.columns > 0)) return text;
  return text
    .split('\n')
    .map(line => (/\S {2,}\S/.test(line) ? line : wrapLine(line, stream.columns)))
    .join('\n');
}

/** A line that rewrites itself on a terminal; silent if the stream is a pipe or a file. */
export class ProgressLine {
  private readonly stream: NodeJS.WriteStream;
  private shown = false;
  private last = 0;

  constructor(stream: NodeJS.WriteStream = process.stderr) {
    this.stream = stream;
  }

  update(text: string): void {
    if (!this.stream.isTTY) return;
    const now = performance.now();
    if (this.shown && now - this.last < 100) return;
    this.last = now;
    this.shown = true;
    this.stream.write(`\r\x1b[2K${cutTo(text, Math.max(10, this.stream.columns - 1))}`);
  }

  clear(): void {
    if (this.shown) this.stream.write('\r\x1b[2K');
    this.shown = false;
  }
}
