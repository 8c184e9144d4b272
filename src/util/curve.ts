// A line chart for a terminal, two by four dots per character (Braille patterns).

/** Bits of the dots of one character cell, by column and row. */
const DOTS = [
  [0x01, 0x02, 0x04, 0x40],
  [0x08, 0x10, 0x20, 0x80],
] as const;

export interface CurveOptions {
  title: string;
  values: readonly number[];
  /** Size of the plot in characters, without the axis. */
  width?: number;
  height?: number;
}

/** Lines of text: a title, and the values from left to right with the largest and the smallest at the axis. */
export function curve({ title, values, width = 60, height = 8 }: CurveOptions): string {
  const low = Math.min(...values);
  const high = Math.max(...values);
  const cells = Array.from({ length: height }, () => new Uint8Array(width));
  const rowOf = (value: number) => Math.round(((high - value) / (high - low || 1)) * (4 * height - 1));
  let last: number | undefined;
  for (let x = 0; x < 2 * width; x++) {
    const at = (x / (2 * width - 1)) * (values.length - 1);
    const left = Math.floor(at);
    const right = Math.min(values.length - 1, left + 1);
    const row = rowOf(values[left]! + (values[right]! - values[left]!) * (at - left));
    // Steep parts are connected, so that the line has no gaps.
    for (let y = Math.min(row, last ?? row); y <= Math.max(row, last ?? row); y++) {
      cells[y >> 2]![x >> 1]! |= DOTS[x & 1]![y & 3]!;
    }
    last = row;
  }
  const labels = cells.map((_, i) => (i === 0 ? high.toFixed(4) : i === height - 1 ? low.toFixed(4) : ''));
  const margin = Math.max(...labels.map(label => label.length));
  const lines = cells.map((row, i) => {
    const dots = [...row].map(bits => String.fromCharCode(0x2800 + bits)).join('');
    return `${labels[i]!.padStart(margin)} ┤${dots.trimEnd()}`;
  });
  return [`${' '.repeat(margin)} ${title}`, ...lines].join('\n');
}
