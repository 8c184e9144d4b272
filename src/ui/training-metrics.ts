// Figures of a run as Prometheus metrics `turbogr_training_*`, on a configurable address.

import { createServer, type ServerResponse } from 'node:http';
import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client';
import type { RunEvent } from '../events/event.js';
import { UserError } from '../util/errors.js';

export interface Address {
  host: string;
  port: number;
}

/** `:9090` binds this machine only; another host must be named: `0.0.0.0:9090`. */
export function parseAddress(text: string): Address {
  const [, host = '', port = ''] = /^(.*?):?(\d+)$/.exec(text) ?? [];
  if (port === '' || Number(port) > 65_535) {
    throw new UserError('bad-address', `"${text}" is not an address to bind`, 'Give :port or host:port.');
  }
  return { host: host.replace(/^\[|\]$/g, '') || '127.0.0.1', port: Number(port) };
}

export class TrainingMetrics {
  readonly registry = new Registry();
  readonly #gauges = new Map<string, Gauge>();
  readonly #validation: Gauge<'metric'>;
  readonly #baseline: Gauge<'metric' | 'baseline'>;
  readonly #memory: Gauge<'owner'>;
  readonly #time: Gauge<'rank' | 'part'>;
  readonly #info: Gauge<'run' | 'model' | 'fingerprint'>;
  readonly #tokens: Counter;
  readonly #checkpoints: Counter;

  constructor() {
    const registers = [this.registry];
    collectDefaultMetrics({ register: this.registry });
    const gauge = <L extends string>(name: string, help: string, labelNames: L[]): Gauge<L> =>
      new Gauge({ name: `turbogr_training_${name}`, help, labelNames, registers });
    const plain = {
      step: 'Optimiser steps done.',
      total_steps: 'Estimated optimiser steps of the whole run.',
      epoch: 'Epochs done.',
      loss: 'Training loss of the last step.',
      learning_rate: 'Learning rate of the last step.',
      tokens_per_second: 'Tokens per second of the last step.',
      mfu: 'Useful FLOPs of the last step as a share of the FMA peak.',
      mfu_paper: 'The same with FLOPs as counted by the TurboGR paper.',
      effective_negatives: 'Distinct unmasked negatives per token.',
      last_event_timestamp_seconds: 'Time of the last event.',
      finished: '1 when training has ended, with or without an error.',
    };
    for (const [name, help] of Object.entries(plain)) this.#gauges.set(name, gauge(name, help, []));
    this.#validation = gauge('validation', 'Last value of the validation metric.', ['metric']);
    this.#baseline = gauge('baseline', 'Baselines on the same events.', ['metric', 'baseline']);
    this.#memory = gauge('memory_bytes', 'Memory by owner.', ['owner']);
    this.#time = gauge('step_time_share', 'Shares of the time of sampled steps on a rank.', ['rank', 'part']);
    this.#info = gauge('run_info', 'The run.', ['run', 'model', 'fingerprint']);
    const counter = (name: string, help: string) => new Counter({ name: `turbogr_training_${name}`, help, registers });
    this.#tokens = counter('tokens_total', 'Tokens trained by this process.');
    this.#checkpoints = counter('checkpoints_total', 'Checkpoints written by this process.');
    this.#set('finished', 0);
  }

  start(run: { path: string; model: string; fingerprint: string; totalSteps: number }): void {
    this.#info.set({ run: run.path, model: run.model, fingerprint: run.fingerprint }, 1);
    this.#set('total_steps', run.totalSteps);
  }

  see(event: RunEvent): void {
    this.#set('last_event_timestamp_seconds', Date.now() / 1000);
    this.#set('step', event.step);
    if (event.kind === 'step') {
      this.#set('loss', event.loss);
      this.#set('learning_rate', event.lr);
      this.#set('tokens_per_second', event.tokensPerSecond);
      this.#set('mfu', event.mfu);
      if (event.mfuPaper !== undefined) this.#set('mfu_paper', event.mfuPaper);
      if (event.negatives) this.#set('effective_negatives', event.negatives.effective);
      this.#tokens.inc(event.tokens);
    } else if (event.kind === 'epoch') this.#set('epoch', event.epoch + 1);
    else if (event.kind === 'validation') this.#validation.set({ metric: event.metric }, event.value);
    else if (event.kind === 'baselines') {
      const { metric } = event;
      for (const [baseline, value] of Object.entries(event.values)) this.#baseline.set({ metric, baseline }, value);
    } else if (event.kind === 'sample') {
      for (const [owner, bytes] of Object.entries(event.memory)) this.#memory.set({ owner }, bytes);
    } else if (event.kind === 'ranks') {
      for (const [rank, { tokens: _tokens, ...shares }] of event.ranks.entries()) {
        for (const [part, share] of Object.entries(shares)) this.#time.set({ rank, part }, share);
      }
    } else if (event.kind === 'checkpoint') this.#checkpoints.inc();
    else if (event.kind === 'finished' || event.kind === 'failed') this.#set('finished', 1);
  }

  #set(name: string, value: number): void {
    this.#gauges.get(name)!.set(value);
  }
}

/** Serves `/metrics`; returns its URL and a function to stop it. */
export async function serveMetrics(
  { registry }: TrainingMetrics,
  { host, port }: Address,
): Promise<{ url: string; close: () => Promise<void> }> {
  const answer = async (response: ServerResponse): Promise<void> => {
    const text = await registry.metrics();
    response.writeHead(200, { 'content-type': registry.contentType }).end(text);
  };
  const server = createServer((request, response) => {
    if (request.url?.split('?')[0] !== '/metrics') {
      response.writeHead(404).end();
      return;
    }
    void answer(response);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const message = `${host}:${port} cannot be bound (${cause.code})`;
      reject(new UserError('port-in-use', message, 'Choose another address with --metrics.', { cause }));
    });
    server.listen(port, host, resolve);
  });
  const address = server.address();
  const bound = typeof address === 'object' && address !== null ? address.port : port;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}/metrics`,
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
