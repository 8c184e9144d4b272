// A line chart: uPlot in the colours of the page, as wide as its panel, with a legend that shows the values at the cursor.

import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { colour, useTheme } from './theme.js';

export interface PlotSeries {
  name: string;
  y: readonly (number | null)[];
  /** 0 to 5. */
  colour: number;
  dashed?: boolean;
  dots?: boolean;
  /** Fill to the next series. */
  bandTo?: boolean;
  hidden?: boolean;
}

export interface PlotProps {
  title: string;
  xName: string;
  x: readonly number[];
  series: readonly PlotSeries[];
  format: (value: number) => string;
  fromZero?: boolean;
  /** Plots of one group share their cursor. */
  group?: string;
}

const HEIGHT = 220;
/** Tick spacings of an integer axis. */
const WHOLE_STEPS = [1, 2, 5]
  .flatMap(unit => [0, 1, 2, 3, 4, 5, 6, 7].map(power => unit * 10 ** power))
  .sort((a, b) => a - b);

function options({ xName, series, format, fromZero, group }: PlotProps, width: number): uPlot.Options {
  const [ink, line] = [colour('muted'), colour('line')];
  const axis = {
    stroke: ink,
    grid: { stroke: line, width: 1 },
    ticks: { stroke: line, width: 1 },
    font: '11px system-ui',
  };
  return {
    width,
    height: HEIGHT,
    padding: [8, 12, 0, 0],
    scales: {
      x: { time: false },
      y: { range: (_plot, low, high) => yRange(low, high, fromZero ?? false) },
    },
    axes: [
      {
        ...axis,
        size: 28,
        label: xName,
        labelSize: 16,
        labelFont: axis.font,
        incrs: WHOLE_STEPS,
        values: (_plot, splits) => splits.map(value => (Number.isInteger(value) ? value.toLocaleString('en-US') : '')),
      },
      { ...axis, size: 62, values: (_plot, splits) => shortest(splits.map(format)) },
    ],
    series: [
      { label: xName },
      ...series.map(({ name, colour: index, dashed, dots, hidden }): uPlot.Series => {
        const stroke = colour(`c${index}`);
        return {
          label: name,
          stroke: hidden ? 'transparent' : stroke,
          width: hidden ? 0 : dashed ? 1.5 : 1.8,
          ...(dashed && { dash: [6, 4] }),
          points: { show: dots ?? false, size: 5, fill: stroke },
          spanGaps: true,
          value: (plot, value, index) =>
            shownValue(value ?? Array.from(plot.data[index] ?? []).findLast(isNumber), format),
        };
      }),
    ],
    bands: series.flatMap(({ bandTo, colour: index }, i) =>
      bandTo ? [{ series: [i + 1, i + 2] as [number, number], fill: `${colour(`c${index}`)}2e` }] : [],
    ),
    cursor: group ? { sync: { key: group } } : {},
    legend: { live: true },
  };
}

/** Without decimals if no tick needs any. */
function shortest(marks: string[]): string[] {
  return marks.every(mark => /\.0+(?!\d)/.test(mark) || !mark.includes('.'))
    ? marks.map(mark => mark.replace(/\.0+(?!\d)/, ''))
    : marks;
}

/** Without a cursor the legend shows the last value. */
function shownValue(value: number | null | undefined, format: PlotProps['format']): string {
  return isNumber(value) ? format(value) : '–';
}

function isNumber(value: number | null | undefined): value is number {
  return typeof value === 'number';
}

function yRange(low: number | null, high: number | null, fromZero: boolean): [number, number] {
  const [from, to] = [fromZero ? 0 : (low ?? 0), high ?? 1];
  const room = (to - from) * 0.05 || Math.abs(to) * 0.1 || 1;
  return [fromZero ? 0 : from - room, to + room];
}

export function Plot(props: PlotProps) {
  const theme = useTheme();
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const data: uPlot.AlignedData = [[...props.x], ...props.series.map(({ y }) => [...y])];
  const shape = `${theme} ${props.series.map(({ name, hidden }) => `${name}${hidden ?? ''}`).join()} ${props.title}`;
  useEffect(() => {
    const element = host.current!;
    plot.current = new uPlot(options(props, element.clientWidth), data, element);
    const sizes = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }));
    sizes.observe(element);
    return () => {
      sizes.disconnect();
      plot.current?.destroy();
    };
  }, [shape]);
  useEffect(() => plot.current?.setData(data), [props.x, ...props.series.map(({ y }) => y)]);
  const empty = props.x.length === 0;
  return (
    <figure class="panel plot" aria-label={props.title}>
      <h3>{props.title}</h3>
      <div ref={host} class={empty ? 'empty' : ''} />
      {empty && <p class="muted">Nothing yet.</p>}
    </figure>
  );
}
