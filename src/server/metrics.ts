// Figures of the server in Prometheus' text format.

import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

const SECONDS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5];
const BATCHES = [1, 2, 4, 8, 16, 32, 64, 128];

export class ServerMetrics {
  readonly registry = new Registry();
  readonly requests: Counter<'route' | 'status'>;
  readonly seconds: Histogram<'route'>;
  readonly batch: Histogram;
  readonly events: Counter;
  readonly reloads: Counter<'result'>;
  readonly #model: Gauge<'name' | 'version'>;

  constructor(waiting: () => number) {
    const { registry } = this;
    const registers = [registry];
    collectDefaultMetrics({ register: registry });
    this.requests = new Counter({
      name: 'turbogr_requests_total',
      help: 'Requests answered.',
      labelNames: ['route', 'status'],
      registers,
    });
    this.seconds = new Histogram({
      name: 'turbogr_request_seconds',
      help: 'Time to the answer.',
      labelNames: ['route'],
      buckets: SECONDS,
      registers,
    });
    this.batch = new Histogram({
      name: 'turbogr_batch_requests',
      help: 'Requests computed together.',
      buckets: BATCHES,
      registers,
    });
    this.events = new Counter({
      name: 'turbogr_events_total',
      help: 'Events accepted, duplicates not counted.',
      registers,
    });
    this.reloads = new Counter({
      name: 'turbogr_reloads_total',
      help: 'Attempts to load a newer model.',
      labelNames: ['result'],
      registers,
    });
    this.#model = new Gauge({
      name: 'turbogr_model_info',
      help: 'The model that answers.',
      labelNames: ['name', 'version'],
      registers,
    });
    const gauge: Gauge = new Gauge({
      name: 'turbogr_queue_requests',
      help: 'Requests that wait for a batch.',
      registers,
      collect: () => gauge.set(waiting()),
    });
  }

  serves(name: string, version: string): void {
    this.#model.reset();
    this.#model.set({ name, version }, 1);
  }
}
