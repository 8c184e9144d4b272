// What a person sees in a terminal: numbers, bars, aligned tables, one progress line. No policy, no logging.

const WHOLE = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

/** 1234567 -> 1,234,567 */
export function formatCount(value: number): string {
  return WHOLE.format(value);
}

/** 0.1234 -> 12.34 % */
export function formatShare(share: number, digits = 2): string {
  return `${(share * 100).toFixed(digits)} %`;
}

/** 83.4 -> 1 min 23 s */
export function formatSeconds(seconds: number): string {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/** A horizontal bar of `share` of `width` cells, exact to an eighth of a cell. */
export function bar(share: number, width: number): string {
  const eighths = Math.round(Math.max(0, Math.min(1, share)) * width * 8);
  return '█'.repeat(Math.floor(eighths / 8)) + (EIGHTHS[eighths % 8] ?? '');
}

/** Rows of cells as aligned columns: text to the left, numbers (and what looks like them) to the right. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = header.map((name, c) => Math.max(name.length, ...rows.map(row => (row[c] ?? '').length)));
  const numeric = header.map((_, c) => rows.length > 0 && rows.every(row => /^[-+]?[\d.,]/.test(row[c] ?? '')));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, c) => (numeric[c] ? cell.padStart(widths[c] ?? 0) : cell.padEnd(widths[c] ?? 0)))
      .join('  ')
      .trimEnd();
  return [line(header), ...rows.map(line)].join('\n');
}

/** One line that rewrites itself on a terminal; silent when the stream is a pipe or a file. */
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
    this.stream.write(`\r\x1b[2K${text.slice(0, Math.max(10, this.stream.columns - 1))}`);
  }

  clear(): void {
    if (this.shown) this.stream.write('\r\x1b[2K');
    this.shown = false;
  }
}
