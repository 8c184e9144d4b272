// Default settings derived from the log, each with its reason. Rules use only statistics of the log, never a clock, so the
// same log gets the same settings on every machine. A recipe disables them; an explicit key overrides its rule, and later
// rules see the explicit value. The experiments behind them are in docs/defaults.md.
//
// V items, D model width, L blocks, N longest sequence, T next-event pairs of an epoch.

import { DRAWN, epochFlops, epochTokens, FLOPS_PER_MINUTE } from './epoch-flops.js';
import type { LogStatistics } from './log-statistics.js';
import type { Config } from './schema.js';

export interface Choice {
  /** Dotted path, such as `model.maxLength`. */
  key: string;
  value: number | string;
  reason: string;
  /** Chosen by measuring on this machine, not from the log's statistics. */
  measured?: true;
}

/** Useful FLOPs of a default run: five and a half minutes on the reference machine. */
const BUDGET = 5.5 * FLOPS_PER_MINUTE;
const EPOCHS = { least: 3, most: 200 };
/** Full softmax is chosen only if the budget allows this many epochs with it. */
const FULL_SOFTMAX_EPOCHS = 10;
const SAMPLED = `a sampled loss; a drawn row takes as long as ${DRAWN} items of a full softmax`;
/** Temperature of the full softmax: by validation on six logs. */
const SOFTER = 0.08;
const RATE = 2e-3;
/** Runs of up to this many epochs use their whole budget; longer ones end by early stopping. */
const FEW_EPOCHS = 30;
const LENGTH = { least: 16, most: 200, step: 16 };
/** If the newest window has less than this share of the training pairs, older windows are trained on too. */
const COVERED = 0.5;
/** Target number of steps per epoch, and bounds on the batch size. */
const STEPS = 64;
const TOKENS = { least: 512, most: 8192 };
/** Above this share of repeats nothing is left out of the ranking. */
const REPEATS = 0.1;
/** Validation users: more would hardly improve the choice of the epoch, and slow every validation down. */
const VALIDATED = 4000;
/** Larger tables update touched rows only, and have no moving average. */
const LARGE_TABLE = 30_000;
const SMALL_LOG = 300_000;

const clamp = (value: number, { least, most }: { least: number; most: number }) =>
  Math.min(most, Math.max(least, value));
const count = (value: number) => value.toLocaleString('en-US');
const share = (value: number) => `${Math.round(100 * value)} %`;

/** `config`: the input completed by the schema's defaults; `isGiven` tells explicit keys from defaults. */
export function chooseSettings(log: LogStatistics, config: Config, isGiven: (key: string) => boolean): Choice[] {
  const choices: Choice[] = [];
  const choose = <T extends number | string>(key: string, known: T, value: T, reason: string): T => {
    if (isGiven(key)) return known;
    choices.push({ key, value, reason });
    return value;
  };
  const { model, loss, optimizer, evaluation } = config;

  const fitting = clamp(Math.ceil((log.length.p90 - 1) / LENGTH.step) * LENGTH.step, LENGTH);
  const maxLength = choose(
    'model.maxLength',
    model.maxLength,
    fitting,
    `nine in ten users have at most ${log.length.p90} training events; ${LENGTH.most} at most`,
  );
  const pairs = log.events - log.users;
  const covered = log.pairsWithin(maxLength) / Math.max(1, pairs);
  const window = choose(
    'window',
    config.window,
    covered < COVERED ? 'sliding' : 'latest',
    `the newest ${maxLength} events contain ${share(covered)} of the training pairs`,
  );
  const sequences = { model: { ...model, maxLength }, window };
  const tokens = epochTokens(log, sequences);
  choose(
    'model.dropout',
    model.dropout,
    tokens < SMALL_LOG ? 0.3 : 0.2,
    `${count(tokens)} training pairs; more dropout below ${count(SMALL_LOG)}`,
  );

  const full = epochFlops(log, { ...sequences, loss: { ...loss, kind: 'full-softmax' } });
  const kind = choose(
    'loss.kind',
    loss.kind,
    full * FULL_SOFTMAX_EPOCHS <= BUDGET ? 'full-softmax' : 'sampled-softmax',
    `${count(log.items)} items: an epoch of full softmax takes ${share(full / BUDGET)} of the budget, ${share(1 / FULL_SOFTMAX_EPOCHS)} at most`,
  );
  if (kind === 'full-softmax') {
    choose(
      'loss.temperature',
      loss.temperature,
      SOFTER,
      'full softmax: better than .05 on validation of most logs that were tried',
    );
  }
  const negatives =
    kind === 'full-softmax'
      ? loss.negatives
      : { count: choose('loss.negatives.count', loss.negatives.count, 256, SAMPLED) };
  const flops = epochFlops(log, { ...sequences, loss: { kind, negatives } });

  let tokensOfStep = stepTokens(config, tokens / Math.max(1, log.users));
  if (!isGiven('batch.tokens') && !isGiven('batch.users')) {
    const fit = clamp(2 ** Math.round(Math.log2(tokens / STEPS)), TOKENS);
    tokensOfStep = choose(
      'batch.tokens',
      0,
      Math.max(fit, maxLength),
      `about ${STEPS} steps per epoch, ${count(TOKENS.least)} to ${count(TOKENS.most)} tokens`,
    );
  }
  const sparse = optimizer.tableStorage !== 'f32';
  const large = log.items > LARGE_TABLE && kind !== 'full-softmax';
  choose(
    'optimizer.table',
    optimizer.table,
    large || sparse ? 'lazy-adam' : 'adamw',
    sparse
      ? '16-bit rows are updated only where touched'
      : `${count(log.items)} rows; only touched rows are updated above ${count(LARGE_TABLE)}`,
  );
  choose(
    'optimizer.lr',
    optimizer.lr,
    RATE,
    'twice that of the public recipes, with warm-up: needs half as many epochs',
  );

  const epochs = choose(
    'epochs',
    config.epochs,
    clamp(Math.floor(BUDGET / flops), EPOCHS),
    `an epoch takes ${share(flops / BUDGET)} of the budget; early stopping ends most runs sooner`,
  );
  const steps = config.maxSteps ?? (epochs * tokens) / (tokensOfStep * config.batch.lanes);
  choose(
    'optimizer.schedule.warmup',
    optimizer.schedule.warmup,
    Math.min(STEPS, Math.floor(steps / 3)),
    'about one epoch, at most a third of the steps',
  );
  choose(
    'optimizer.schedule.kind',
    optimizer.schedule.kind,
    epochs <= FEW_EPOCHS ? 'cosine' : 'constant',
    `${epochs} epochs; runs of up to ${FEW_EPOCHS} use all of them, decaying to zero`,
  );
  choose(
    'evaluation.patience',
    evaluation.patience ?? 0,
    log.validation < VALIDATED ? 8 : 4,
    `${count(log.validation)} validation events; fewer are noisier, so wait longer`,
  );
  if (log.validation > VALIDATED) {
    choose(
      'evaluation.users',
      evaluation.users ?? 0,
      VALIDATED,
      `of ${count(log.validation)} users with validation events`,
    );
  }
  if (!isGiven('evaluation.exclude')) {
    const repeats = log.repeats();
    choose(
      'evaluation.exclude',
      evaluation.exclude,
      repeats > REPEATS ? 'none' : 'history',
      `${share(repeats)} of the validation targets are repeats; above ${share(REPEATS)} nothing is left out of the ranking`,
    );
  }
  if (typeof config.priors === 'string') {
    choose('priors', config.priors, 'auto', 'weights fitted on validation, kept if they help');
  }
  return choices;
}

/** Tokens of a batch, whether sized by tokens or by users. */
function stepTokens({ batch }: Config, tokensOfUser: number): number {
  return 'tokens' in batch ? batch.tokens : batch.users * tokensOfUser;
}
