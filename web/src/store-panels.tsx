// The data behind a run: lengths of histories, popularity of items.

import { formatCount, formatShare, formatShort } from '../../src/util/format.js';
import { getStore, useLoaded } from './api.js';
import { Plot } from './plot.js';

export function StorePanels({ id }: { id: string }) {
  const { value: facts, error } = useLoaded(() => getStore(id), [id]);
  if (error) return <p class="panel muted">The store cannot be read: {error.message}</p>;
  if (!facts) return null;
  const most = Math.max(...facts.lengths.map(({ users }) => users), 1);
  return (
    <div class="charts">
      <figure class="panel" aria-label="length histogram">
        <h3>Events per user</h3>
        <div class="histogram">
          {facts.lengths.map(({ from, to, users }) => (
            <div key={from} title={`${from} to ${to} events: ${formatCount(users)} users`}>
              <i style={{ height: `${(100 * users) / most}%` }} />
              <span>{formatShort(from)}</span>
            </div>
          ))}
        </div>
        <p class="muted">
          {formatCount(facts.users)} users, {formatCount(facts.events)} events, median {formatCount(facts.medianLength)}
          .
        </p>
      </figure>
      <Plot
        title="Share of the events on the most popular items"
        xName="% of the catalogue"
        x={facts.popularity.map(({ items }) => Math.round(1000 * items) / 10)}
        format={value => formatShare(value, 0)}
        fromZero
        series={[
          { name: 'of the events', y: facts.popularity.map(({ events }) => events), colour: 2 },
          { name: 'if all were equal', y: facts.popularity.map(({ items }) => items), colour: 4, dashed: true },
        ]}
      />
    </div>
  );
}
