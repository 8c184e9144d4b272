// Two runs side by side. Different data is never compared silently.

import { useMemo, useState } from 'preact/hooks';
import { formatShare, formatShort } from '../../src/util/format.js';
import { METRIC_HEADER, metricRows } from '../../src/view/compare.js';
import { comparedFigures } from '../../src/view/figures.js';
import { type Comparison, getComparison, Refusal, type RunView, useLoaded } from './api.js';
import { Plot } from './plot.js';
import { State } from './run-list.js';
import { Table } from './table.js';

export function ComparePage({ a, b }: { a: string; b: string }) {
  const [anyway, setAnyway] = useState(false);
  const { value: comparison, error } = useLoaded(() => getComparison(a, b, anyway), [a, b, anyway]);
  if (error) {
    return (
      <div class="panel alert error" role="alert">
        {error.message}
        <div class="muted">{error instanceof Refusal ? error.remedy : ''}</div>
        {error instanceof Refusal && error.code === 'not-comparable' && (
          <button type="button" onClick={() => setAnyway(true)}>
            Show them side by side
          </button>
        )}
      </div>
    );
  }
  if (!comparison) return <p class="muted">Reading the runs …</p>;
  return <Compared comparison={comparison} links={[a, b]} />;
}

function Compared({ comparison, links }: { comparison: Comparison; links: [string, string] }) {
  const { a, b, sameData, differences, cases } = comparison;
  return (
    <>
      <h1>Comparison</h1>
      {[a, b].map((view, i) => (
        <p key={view.path}>
          <b>{'ab'[i]}</b> <a href={`#/run/${links[i]}`}>{view.path}</a> <State state={view.state} />
        </p>
      ))}
      {!sameData && (
        <div class="panel alert error" role="alert">
          Different fingerprints: trained and tested on different events. The figures cannot be compared.
        </div>
      )}
      <ComparedCurves a={a} b={b} />
      <div class="charts">
        <div class="panel">
          <h3>Config: {differences.length === 0 ? 'the same in every key' : 'what differs'}</h3>
          <Table
            header={['key', 'a', 'b']}
            rows={differences.map(({ key, a: left, b: right }) => [key, left ?? '–', right ?? '–'])}
          />
        </div>
        <div class="panel">
          <h3>Figures</h3>
          <Table header={['', 'a', 'b']} rows={comparedFigures(a, b)} />
        </div>
      </div>
      <div class="panel">
        <h3>Test, with 95 % intervals; the difference is paired by user</h3>
        {comparison.metrics.length === 0 ? (
          <p class="muted">One of the runs has no test figures.</p>
        ) : (
          <Table header={METRIC_HEADER} rows={metricRows(comparison)} />
        )}
        {cases && (
          <p class="muted">
            {cases.cases} cases of {cases.users} users: b ranks {cases.better} higher, {cases.worse} lower,{' '}
            {cases.equal} the same.
          </p>
        )}
      </div>
    </>
  );
}

interface Column {
  x: readonly number[];
  y: readonly (number | null)[];
}

/** Both columns over the union of their x. */
function align(a: Column, b: Column): { x: number[]; a: (number | null)[]; b: (number | null)[] } {
  const x = [...new Set([...a.x, ...b.x])].sort((left, right) => left - right);
  const values = ({ x: at, y }: Column): (number | null)[] => {
    const known = new Map(at.map((value, i) => [value, y[i] ?? null]));
    return x.map(value => known.get(value) ?? null);
  };
  return { x, a: values(a), b: values(b) };
}

function ComparedCurves({ a, b }: { a: RunView; b: RunView }) {
  const plots = useMemo(() => {
    const both = (of: (view: RunView) => Column) => align(of(a), of(b));
    return [
      {
        title: 'Training loss, mean of the epoch',
        xName: 'epoch',
        format: (value: number) => value.toFixed(3),
        ...both(view => ({
          x: view.epochSeries.map(({ epoch }) => epoch + 1),
          y: view.epochSeries.map(({ loss }) => loss),
        })),
      },
      {
        title: a.metric === b.metric ? `Validation ${a.metric}` : `Validation (a: ${a.metric}, b: ${b.metric})`,
        xName: 'epoch',
        format: (value: number) => value.toFixed(4),
        ...both(view => ({
          x: view.validations.map(({ epoch }) => epoch + 1),
          y: view.validations.map(({ value }) => value),
        })),
      },
      {
        title: 'Tokens per second',
        xName: 'step',
        format: formatShort,
        fromZero: true,
        ...both(({ steps }) => ({ x: steps.step, y: steps.tokensPerSecond })),
      },
      {
        title: 'MFU, useful work',
        xName: 'step',
        format: (value: number) => formatShare(value, 1),
        fromZero: true,
        ...both(({ steps }) => ({ x: steps.step, y: steps.mfu })),
      },
    ];
  }, [a, b]);
  return (
    <div class="charts">
      {plots.map(({ a: ofA, b: ofB, ...plot }) => (
        <Plot
          key={plot.title}
          {...plot}
          series={[
            { name: 'a', y: ofA, colour: 0, dots: plot.xName === 'epoch' },
            { name: 'b', y: ofB, colour: 1, dots: plot.xName === 'epoch' },
          ]}
        />
      ))}
    </div>
  );
}
