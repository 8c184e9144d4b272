// One run, live.

import { formatCount } from '../../src/util/format.js';
import { flatConfig, keyFigures, machineRows, rankRows, testRows } from '../../src/view/figures.js';
import { type RunView, useRun } from './api.js';
import { Costs } from './costs.js';
import { Curves } from './curves.js';
import { Lanes } from './lanes.js';
import { ago, State } from './run-list.js';
import { StorePanels } from './store-panels.js';
import { Table } from './table.js';

export function RunPage({ id }: { id: string }) {
  const { view, live } = useRun(id);
  if (!view) return <p class="muted">Reading the run …</p>;
  const test = view.report?.test && testRows(view.report.test);
  const ranks = rankRows(view);
  return (
    <>
      <div class="row">
        <h1>{view.path}</h1>
        <State state={view.state} />
        <span class="grow" />
        <span class={live ? 'live' : 'muted'}>{live ? 'connected' : 'the server does not answer'}</span>
        <a href={`api/runs/${id}/report`}>Report</a>
      </div>
      <p class="muted">{describe(view)}</p>
      <Alerts view={view} />
      <div class="panel keys">
        {keyFigures(view).map(([name, value]) => (
          <div key={name}>
            <span class="muted">{name}</span>
            <b>{value}</b>
          </div>
        ))}
      </div>
      <Curves view={view} />
      {test && (
        <div class="panel">
          <h3>Test: the whole catalogue ranked, with 95 % intervals</h3>
          <Table {...test} />
        </div>
      )}
      <h2>Time and memory</h2>
      {ranks && (
        <div class="panel">
          <h3>Steps by rank: parts of the wall clock, by the samples</h3>
          <Table {...ranks} />
        </div>
      )}
      <Costs view={view} />
      <Lanes id={id} at={view.spansAt} />
      <h2>Data</h2>
      <StorePanels id={id} />
      <h2>Identity</h2>
      <div class="charts">
        <div class="panel">
          <h3>Digest, fingerprint, machine</h3>
          <Table
            words
            header={['', '']}
            rows={[
              ['weights', view.digest ?? 'not yet'],
              ['data fingerprint', view.fingerprint],
              ['checkpoints', `${formatCount(view.checkpoints.count)} written, the last ${ago(view.checkpoints.last)}`],
              ...machineRows(view),
            ]}
          />
          <h3>Resumed</h3>
          {view.resumes.length === 0 ? (
            <p class="muted">Never: one process since the first step.</p>
          ) : (
            <Table
              words
              header={['time', 'step', 'from']}
              rows={view.resumes.map(({ time, step, from }) => [
                time.slice(0, 19).replace('T', ' '),
                String(step),
                from,
              ])}
            />
          )}
        </div>
        <div class="panel config">
          <h3>Config</h3>
          <Table words header={['', '']} rows={flatConfig(view.config)} />
        </div>
      </div>
    </>
  );
}

function describe({ model, data, state, epoch, epochs, updated, reason }: RunView): string {
  const parts = [
    model,
    ...(data ? [`${formatCount(data.users)} users, ${formatCount(data.items)} items`] : []),
    state === 'running' ? `epoch ${Math.min(epoch + 1, epochs)} of ${epochs}` : `${epoch} of ${epochs} epochs`,
    ...(reason ? [`ended by: ${reason}`] : []),
    `last event ${ago(updated)}`,
  ];
  return parts.join(' · ');
}

export function Alerts({ view }: { view: RunView }) {
  return (
    <>
      {view.alerts.map(({ level, text, remedy }) => (
        <div class={`panel alert ${level}`} role="alert" key={text}>
          {text}
          <div class="muted">{remedy}</div>
        </div>
      ))}
    </>
  );
}
