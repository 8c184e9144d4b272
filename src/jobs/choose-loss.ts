// `loss.kind: auto`: full softmax if it is about as fast as the sampled one. Both are measured on this machine: loss and table
// update on a batch of the run's size. The choice is saved in the run's config, so that a resumed run and all ranks use the
// same loss.
//
// T tokens of a lane, V items, D width.

import type { Choice } from '../config/rules.js';
import type { LossConfig, ResolvedConfig } from '../config/schema.js';
import { Device } from '../native/device.js';
import { Scorer } from '../nn/scorer.js';
import { fillTruncNormal } from '../ops/fill.js';
import { Table } from '../ops/table.js';
import { Tape } from '../ops/tape.js';
import { GradientSums } from '../optim/gradients.js';
import { localGradients, Optimizer } from '../optim/optimizer.js';
import { Objective } from '../train/objective.js';

/** Full softmax is the exact loss, so it may cost this factor more. */
const WORTH = 1.1;
/** Limit on the measured FLOPs of full softmax: below a second; the result is scaled by tokens. */
const MEASURED = 2e10;
const MOST_TOKENS = 4096;
const ROUNDS = 3;

/** The config with the chosen loss, and why. `known`: the choice of an existing run, which is not measured again. */
export async function chooseLoss(
  config: ResolvedConfig,
  items: number,
  known?: LossConfig['kind'],
): Promise<{ config: ResolvedConfig; choices: Choice[] }> {
  if (config.loss.kind !== 'auto') return { config, choices: [] };
  if (known) return { config: { ...config, loss: { ...config.loss, kind: known } }, choices: [] };
  const { batch, model } = config;
  const tokens = Math.min(MOST_TOKENS, 'tokens' in batch ? batch.tokens : batch.users * model.maxLength);
  const some = Math.floor(MEASURED / (6 * items * model.d));
  const fullTokens = Math.max(32, Math.min(tokens, some));
  const full = (await measure(config, items, 'full-softmax', fullTokens)) * (tokens / fullTokens);
  const sampled = await measure(config, items, 'sampled-softmax', tokens);
  const kind = full <= WORTH * sampled ? 'full-softmax' : 'sampled-softmax';
  const show = (seconds: number) => `${(1000 * seconds).toPrecision(3)} ms`;
  const reason =
    `over ${tokens} tokens, loss and table update: full softmax ${show(full)}, sampled ${show(sampled)}; ` +
    `full up to ${WORTH} times the sampled`;
  const choices: Choice[] = [{ key: 'loss.kind', value: kind, reason, measured: true }];
  return { config: { ...config, loss: { ...config.loss, kind } }, choices };
}

/** Seconds of one loss with gradients and table update; best of a few. */
async function measure(
  config: ResolvedConfig,
  items: number,
  kind: LossConfig['kind'],
  tokens: number,
): Promise<number> {
  using device = Device.open(config.threads === undefined ? {} : { threads: config.threads });
  const { d } = config.model;
  const value = device.tensor([items, d]);
  fillTruncNormal(device, value, { seed: 1, step: 0, purpose: 0 }, { std: 0.02, low: -0.04, high: 0.04 });
  const states = device.tensor([tokens, d]);
  fillTruncNormal(device, states, { seed: 1, step: 0, purpose: 1 }, { std: 1, low: -2, high: 2 });
  const table = new Table(device, 'items', value);
  const loss = { ...config.loss, kind };
  const counts = new Int32Array(items).fill(1);
  const objective = new Objective({ device, scorer: new Scorer(table, loss), config: loss, counts });
  const trained = { parameters: [], decays: [], tables: [table] };
  const [gradients, optimizer] = [new GradientSums(device, trained), new Optimizer(device, config.optimizer, trained)];
  const targets = device.from(Int32Array.from({ length: tokens }, (_, t) => (t * 97) % items));
  const events = { items: targets, targets, offsets: device.from(Int32Array.of(0, tokens)) };
  let best = Number.POSITIVE_INFINITY;
  for (let step = 1; step <= ROUNDS; step++) {
    await device.sync();
    const start = performance.now();
    using tape = new Tape(device, { training: true });
    tape.watch(states);
    const draws = objective.draw(events, { seed: 1, step, purpose: 0 });
    const input = { states, meanOver: tokens };
    const { logq } = objective;
    if (draws) objective.sampled(tape, input, { rows: table, events, draws, ...(logq && { logq }) });
    else objective.full(tape, input, targets);
    const rates = { step, lr: 1e-3, tableLr: 1e-3 };
    const { dense, tables } = gradients.take({ lane: 0, defer: () => true });
    const applied = optimizer.apply({ dense: localGradients(dense), tables: () => tables }, rates);
    gradients.release({ dense, tables: applied });
    await device.sync();
    best = Math.min(best, (performance.now() - start) / 1000);
    draws?.ids.dispose();
    if (draws?.kind === 'groups') draws.members.dispose();
  }
  return best;
}
