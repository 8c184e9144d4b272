// A line chart as inline SVG. Colours are classes (`s0`, `s1`, ...) defined by the page's style, so charts follow the theme.

import { escapeHtml } from './html.js';

export interface ChartSeries {
  name: string;
  x: readonly number[];
  y: readonly (number | null)[];
  /** [x] lower and upper edge of a band around the line. */
  band?: { low: readonly number[]; high: readonly number[] };
  /** Draw a dot at every point. */
  dots?: boolean;
}

export interface ChartOptions {
  title: string;
  /** Label of the x axis. */
  xName: string;
  series: readonly ChartSeries[];
  /** Horizontal lines, dashed. */
  lines?: readonly { name: string; value: number }[];
  format: (value: number) => string;
  /** The axis begins at 0. */
  fromZero?: boolean;
}

const SIZE = { width: 560, height: 260, left: 64, right: 14, top: 34, bottom: 34 };

/** About `count` round numbers that cover a range. */
export function ticks(low: number, high: number, count = 6): number[] {
  const span = high - low || Math.abs(high) || 1;
  const raw = span / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map(unit => unit * power).find(unit => unit >= raw) ?? raw;
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/** An empty string if there is nothing to draw. */
export function lineChart({ title, xName, series, lines = [], format, fromZero = false }: ChartOptions): string {
  const shown = series.filter(({ y }) => y.some(isNumber));
  if (shown.length === 0) return '';
  const xs = shown.flatMap(({ x }) => [x[0]!, x.at(-1)!]);
  const [left, right] = [Math.min(...xs), Math.max(...xs)];
  const [low, high] = range([...shown.flatMap(valuesOf), ...lines.map(({ value }) => value)], fromZero);
  const { width, height } = SIZE;
  const px = (x: number): number => SIZE.left + ((x - left) / (right - left || 1)) * (width - SIZE.left - SIZE.right);
  const py = (y: number): number =>
    height - SIZE.bottom - ((y - low) / (high - low)) * (height - SIZE.top - SIZE.bottom);
  const at = (x: number, y: number): string => `${px(x).toFixed(1)},${py(y).toFixed(1)}`;
  const parts = [`<text class="title" x="4" y="16">${escapeHtml(title)}</text>`];
  for (const value of ticks(low, high)) {
    const y = py(value).toFixed(1);
    parts.push(`<path class="grid" d="M${SIZE.left} ${y}H${width - SIZE.right}"/>`);
    parts.push(
      `<text class="tick" x="${SIZE.left - 6}" y="${(py(value) + 4).toFixed(1)}" text-anchor="end">${escapeHtml(format(value))}</text>`,
    );
  }
  for (const value of ticks(left, right, 6)) {
    if (!Number.isInteger(value)) continue;
    parts.push(
      `<text class="tick" x="${px(value).toFixed(1)}" y="${height - 14}" text-anchor="middle">${value.toLocaleString('en-US')}</text>`,
    );
  }
  parts.push(
    `<text class="tick" x="${width - SIZE.right}" y="${height - 2}" text-anchor="end">${escapeHtml(xName)}</text>`,
  );
  shown.forEach(({ x, y, band, dots }, i) => {
    if (band) {
      const edge = [
        ...x.map((value, k) => at(value, band.high[k]!)),
        ...x.map((value, k) => at(value, band.low[k]!)).toReversed(),
      ];
      parts.push(`<polygon class="band s${i}" points="${edge.join(' ')}"/>`);
    }
    const points = x.flatMap((value, k) => (isNumber(y[k]) ? [at(value, y[k])] : []));
    parts.push(`<polyline class="line s${i}" points="${points.join(' ')}"/>`);
    if (dots || points.length === 1) {
      for (const point of points)
        parts.push(`<circle class="dot s${i}" cx="${point.replace(',', '" cy="')}" r="2.5"/>`);
    }
  });
  lines.forEach(({ value }, i) => {
    const y = py(value).toFixed(1);
    parts.push(`<path class="rule s${shown.length + i}" d="M${SIZE.left} ${y}H${width - SIZE.right}"/>`);
  });
  const legend = legendOf([
    ...shown.map(({ name }) => name),
    ...lines.map(({ name, value }) => `${name} ${format(value)}`),
  ]);
  return `<figure><svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${escapeHtml(title)}">${parts.join('')}</svg>${legend}</figure>`;
}

function legendOf(names: readonly string[]): string {
  if (names.length < 2) return '';
  const entries = names.map((name, i) => `<span><i class="key s${i}"></i>${escapeHtml(name)}</span>`);
  return `<figcaption>${entries.join('')}</figcaption>`;
}

function isNumber(value: number | null | undefined): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}

function valuesOf({ y, band }: ChartSeries): number[] {
  return [...y, ...(band?.low ?? []), ...(band?.high ?? [])].filter(isNumber);
}

function range(values: readonly number[], fromZero: boolean): [low: number, high: number] {
  let low = fromZero ? 0 : Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  const room = (high - low) * 0.04 || Math.abs(high) * 0.1 || 1;
  return [fromZero ? 0 : low - room, high + room];
}
