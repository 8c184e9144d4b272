// The scaling-law picture, SVG: held-out loss against data for each model, and against model for each amount of data,
// both axes logarithmic. Dots are measured, thin lines are the fitted law.

import { lawAt, type ScalingLaw, type ScalingPoint } from './scaling-law.js';

/** A panel's place and size in pixels; its frame is the plot without labels. */
const PANEL = { width: 400, height: 320, left: 62, top: 48, gap: 84 };
const TOTAL = { width: 2 * PANEL.width + PANEL.left + PANEL.gap + 24, height: PANEL.height + 144 };
/** From few to many: light to dark, colour-blind safe (viridis). */
const COLOURS = ['#a8c93a', '#3fb774', '#22898d', '#365d8d', '#46317e', '#2a0845'];
const INK = '#24292f';
const FAINT = '#d8dee4';

interface Series {
  name: string;
  points: { x: number; loss: number }[];
  law: (x: number) => number;
}

interface Panel {
  title: string;
  axis: string;
  /** Heading of the legend. */
  of: string;
  series: Series[];
}

/** 185534 -> 186k */
function short(value: number): string {
  const [scaled, unit] = value >= 1e6 ? [value / 1e6, 'M'] : value >= 1e3 ? [value / 1e3, 'k'] : [value, ''];
  return `${Number(scaled.toPrecision(3))}${unit}`;
}

function ascending(values: Iterable<number>): number[] {
  return [...new Set(values)].sort((a, b) => a - b);
}

function logScale([from, to]: [number, number], [low, high]: [number, number]): (value: number) => number {
  return value => low + ((Math.log(value) - Math.log(from)) / (Math.log(to) - Math.log(from))) * (high - low);
}

/** About five round numbers inside a range. */
function ticks(from: number, to: number): number[] {
  const step = [0.05, 0.1, 0.2, 0.25, 0.5, 1, 2].find(size => (to - from) / size <= 6) ?? 5;
  const first = Math.ceil(from / step);
  return Array.from({ length: Math.floor(to / step) - first + 1 }, (_, i) => (first + i) * step);
}

function text(x: number, y: number, words: string, style = ''): string {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" ${style}>${words}</text>`;
}

function path(points: readonly (readonly [number, number])[], style: string): string {
  const line = points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(' ');
  return `<polyline points="${line}" fill="none" ${style}/>`;
}

function drawPanel({ title, axis, of, series }: Panel, left: number, losses: [number, number]): string {
  const [right, top, bottom] = [left + PANEL.width, PANEL.top, PANEL.top + PANEL.height];
  const xs = ascending(series.flatMap(({ points }) => points.map(point => point.x)));
  const [first, last] = [xs[0]!, xs.at(-1)!];
  const x = logScale([first / 1.15, last * 1.15], [left, right]);
  const y = logScale(losses, [bottom, top]);
  const parts = [
    text(left, top - 20, title, 'font-weight="600" font-size="15"'),
    text((left + right) / 2, bottom + 44, axis, 'text-anchor="middle"'),
  ];
  for (const loss of ticks(...losses)) {
    const at = y(loss);
    parts.push(
      path(
        [
          [left, at],
          [right, at],
        ],
        `stroke="${FAINT}"`,
      ),
    );
    parts.push(text(left - 8, at + 4, String(Number(loss.toFixed(2))), 'text-anchor="end"'));
  }
  for (const value of xs) {
    parts.push(
      path(
        [
          [x(value), bottom],
          [x(value), bottom + 5],
        ],
        `stroke="${INK}"`,
      ),
    );
    parts.push(text(x(value), bottom + 20, short(value), 'text-anchor="middle"'));
  }
  parts.push(
    path(
      [
        [left, top],
        [left, bottom],
        [right, bottom],
      ],
      `stroke="${INK}"`,
    ),
  );
  series.forEach(({ points, law }, i) => {
    const colour = colourOf(i, series.length);
    const along = Array.from({ length: 41 }, (_, k) => first * (last / first) ** (k / 40));
    parts.push(
      path(
        along.map(value => [x(value), y(law(value))] as const),
        `stroke="${colour}" stroke-opacity=".55"`,
      ),
    );
    for (const point of points) {
      parts.push(`<circle cx="${x(point.x).toFixed(1)}" cy="${y(point.loss).toFixed(1)}" r="4" fill="${colour}"/>`);
    }
  });
  // Curves fall from the upper left, so the lower left is free.
  const [legend, under] = [left + 16, bottom - 18 * series.length - 22];
  parts.push(text(legend, under + 14, of, 'font-weight="600"'));
  series.forEach(({ name }, i) => {
    const at = under + 34 + 18 * i;
    parts.push(`<circle cx="${legend + 5}" cy="${at - 4}" r="4" fill="${colourOf(i, series.length)}"/>`);
    parts.push(text(legend + 16, at, name));
  });
  return parts.join('\n');
}

function colourOf(i: number, count: number): string {
  return COLOURS[count === 1 ? 0 : Math.round((i / (count - 1)) * (COLOURS.length - 1))]!;
}

export function plotScaling(points: readonly ScalingPoint[], law: ScalingLaw): string {
  const models = ascending(points.map(point => point.parameters));
  const amounts = ascending(points.map(point => point.events));
  const losses = points.flatMap(({ parameters, events, loss }) => [loss, lawAt(law, parameters, events)]);
  const range: [number, number] = [Math.min(...losses) * 0.985, Math.max(...losses) * 1.015];
  const againstData: Panel = {
    title: 'More data',
    axis: 'training events D',
    of: 'parameters N',
    series: models.map(parameters => ({
      name: short(parameters),
      points: points.filter(p => p.parameters === parameters).map(({ events, loss }) => ({ x: events, loss })),
      law: events => lawAt(law, parameters, events),
    })),
  };
  const againstModel: Panel = {
    title: 'Larger models',
    axis: 'parameters N',
    of: 'events D',
    series: amounts.map(events => ({
      name: short(events),
      points: points.filter(p => p.events === events).map(({ parameters, loss }) => ({ x: parameters, loss })),
      law: parameters => lawAt(law, parameters, events),
    })),
  };
  const fit =
    `dots: measured; lines: L = ((${law.A.toPrecision(3)} / N^a)^s + (${law.B.toPrecision(3)} / D^b)^s)^(1/s) with ` +
    `a = ${law.a.toFixed(3)}, b = ${law.b.toFixed(3)}, s = ${law.s.toFixed(1)}; rms error ${law.error.toFixed(3)}`;
  const middle = PANEL.top + PANEL.height / 2;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${TOTAL.width} ${TOTAL.height}" width="${TOTAL.width}" height="${TOTAL.height}" font-family="system-ui, sans-serif" font-size="12" fill="${INK}">`,
    `<rect width="100%" height="100%" fill="#ffffff"/>`,
    text(16, middle, 'held-out loss, nats', `text-anchor="middle" transform="rotate(-90 16 ${middle})"`),
    drawPanel(againstData, PANEL.left, range),
    drawPanel(againstModel, PANEL.left + PANEL.width + PANEL.gap, range),
    text(PANEL.left, TOTAL.height - 14, fit),
    '</svg>\n',
  ].join('\n');
}
