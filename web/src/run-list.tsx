// All runs, most recently active first.

import { useEffect, useState } from 'preact/hooks';
import { formatShare } from '../../src/util/format.js';
import { type RunSummary, useRuns } from './api.js';
import { useKeys } from './app.js';

export function ago(time: string | null): string {
  if (!time) return '–';
  const seconds = Math.max(0, (Date.now() - Date.parse(time)) / 1000);
  if (seconds < 90) return `${Math.round(seconds)} s ago`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 129_600) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86_400)} days ago`;
}

export function State({ state }: { state: RunSummary['state'] }) {
  return <span class={`state ${state}`}>{state}</span>;
}

export function RunList() {
  const { value: runs, error } = useRuns();
  const [at, setAt] = useState(0);
  const [marked, setMarked] = useState<string[]>([]);
  const sorted = [...(runs ?? [])].sort((a, b) => ((a.updated ?? '') < (b.updated ?? '') ? 1 : -1));
  const mark = (id: string): void =>
    setMarked(old => (old.includes(id) ? old.filter(other => other !== id) : [...old, id].slice(-2)));
  const compare = (): void => {
    if (marked.length === 2) location.hash = `#/compare/${marked.join('/')}`;
  };
  useKeys(key => {
    const run = sorted[at];
    if (key === 'j' || key === 'ArrowDown') setAt(Math.min(sorted.length - 1, at + 1));
    else if (key === 'k' || key === 'ArrowUp') setAt(Math.max(0, at - 1));
    else if (key === 'Enter' && run) location.hash = `#/run/${run.id}`;
    else if (key === 'x' && run) mark(run.id);
    else if (key === 'c') compare();
  });
  useEffect(() => document.querySelector('tr.at')?.scrollIntoView({ block: 'nearest' }), [at]);
  if (error) return <p class="panel alert error">The server does not answer: {error.message}</p>;
  if (!runs) return <p class="muted">Reading the runs …</p>;
  if (runs.length === 0) return <p class="panel">There is no run here yet. `npx turbogr demo` makes one.</p>;
  return (
    <section>
      <div class="row">
        <h1>Runs</h1>
        <span class="grow" />
        <button type="button" disabled={marked.length !== 2} onClick={compare}>
          Compare {marked.length} of 2
        </button>
      </div>
      <div class="panel scroll">
        <table class="runs">
          <thead>
            <tr>
              <th aria-label="compare" />
              <th>run</th>
              <th>state</th>
              <th>model</th>
              <th>progress</th>
              <th>loss</th>
              <th>best validation</th>
              <th>data</th>
              <th>last sign of life</th>
            </tr>
          </thead>
          <tbody>
            {sorted.map((run, i) => (
              <Row key={run.id} run={run} at={i === at} marked={marked.includes(run.id)} mark={mark} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

interface RowProps {
  run: RunSummary;
  at: boolean;
  marked: boolean;
  mark: (id: string) => void;
}

function Row({ run, at, marked, mark }: RowProps) {
  const total = run.state === 'finished' ? run.step : (run.totalSteps ?? 0);
  const share = total > 0 ? Math.min(1, run.step / total) : 0;
  return (
    <tr class={at ? 'at' : ''}>
      <td>
        <input type="checkbox" checked={marked} onChange={() => mark(run.id)} aria-label={`compare ${run.path}`} />
      </td>
      <th scope="row">
        <a href={`#/run/${run.id}`}>{run.path}</a>
        {run.alerts.map(({ level, text }) => (
          <span class={`badge ${level}`} title={text}>
            !
          </span>
        ))}
      </th>
      <td>
        <State state={run.state} />
      </td>
      <td>{run.model}</td>
      <td>
        <progress value={share} aria-label="progress" /> {formatShare(share, 0)}
      </td>
      <td class="n">{run.loss?.toFixed(4) ?? '–'}</td>
      <td class="n">{run.best === null ? '–' : `${run.metric} ${run.best.toFixed(4)}`}</td>
      <td>
        <code>{run.fingerprint.slice(0, 8)}</code>
      </td>
      <td>{ago(run.updated)}</td>
    </tr>
  );
}
