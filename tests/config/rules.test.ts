import { expect, test } from 'vitest';
import type { LogStatistics } from '../../src/config/log-statistics.js';
import { resolveConfig, resolveForLog } from '../../src/config/resolve.js';
import { logStatistics } from '../../src/data/log-statistics.js';
import { MemorySource } from '../../src/data/memory-source.js';

/** A log of this many users with equally many training events each. */
function log(users: number, length: number, more: Partial<LogStatistics> = {}): LogStatistics {
  return {
    users,
    items: 4000,
    events: users * length,
    hasTime: true,
    length: { mean: length, median: length, p90: length, max: length },
    validation: users,
    repeats: () => 0,
    pairsWithin: maxLength => users * Math.min(maxLength, length - 1),
    ...more,
  };
}

test('every choice has a reason, and is in the config', () => {
  const { config, choices } = resolveForLog(log(600, 165));
  expect(choices.length).toBeGreaterThan(8);
  for (const { key, value, reason } of choices) {
    const found = key.split('.').reduce<unknown>((tree, name) => Object(tree)[name], config);
    expect([key, found]).toEqual([key, value]);
    expect(reason.length).toBeGreaterThan(5);
  }
});

test('what is given wins, and the rules after it see it', () => {
  const { config, choices } = resolveForLog(log(600, 165), { model: { maxLength: 50 }, epochs: 7 });
  expect(config.model.maxLength).toBe(50);
  expect(config.epochs).toBe(7);
  expect(choices.map(({ key }) => key)).not.toContain('model.maxLength');
  // Fifty of 165 events are less than half: older windows count too.
  expect(config.window).toBe('sliding');
  expect(resolveForLog(log(600, 165)).config.window).toBe('latest');
  expect(resolveForLog(log(600, 165), { model: { size: 'large' } }).config.model.maxLength).toBe(2048);
});

test('a recipe switches the rules off', () => {
  for (const recipe of ['plain', 'ml-1m-hstu']) {
    expect(resolveForLog(log(600, 165), { recipe })).toEqual({ config: resolveConfig({ recipe }), choices: [] });
  }
  expect(resolveConfig({ recipe: 'plain' })).toEqual({ ...resolveConfig({}), recipe: 'plain' });
});

test('length, batch, loss and epochs follow the size of the log', () => {
  const short = resolveForLog(log(20_000, 8)).config;
  expect(short.model.maxLength).toBe(16);
  expect(short.batch).toEqual({ tokens: 2048, lanes: 1 });
  expect(short.loss).toMatchObject({ kind: 'full-softmax', temperature: 0.08 });
  const long = resolveForLog(log(3000, 1000, { items: 130_000 })).config;
  expect(long.model.maxLength).toBe(200);
  expect(long.window).toBe('sliding');
  expect(long.loss).toMatchObject({ kind: 'sampled-softmax', temperature: 0.05 });
  expect(long.optimizer.table).toBe('lazy-adam');
  expect(long.epochs).toBeLessThan(short.epochs);
  expect(resolveForLog(log(1000, 5000, { items: 10 ** 6 }), { model: { d: 1024, blocks: 16 } }).config.epochs).toBe(3);
});

test('noisy validations are waited for longer', () => {
  expect(resolveForLog(log(3999, 20)).config.evaluation.patience).toBe(8);
  expect(resolveForLog(log(4000, 20)).config.evaluation.patience).toBe(4);
});

test('a drawn negative counts for what it costs', () => {
  const given = { loss: { kind: 'sampled-softmax', negatives: { count: 256 } } } as const;
  const sampled = resolveForLog(log(3000, 1000), given).config.epochs;
  const full = resolveForLog(log(3000, 1000, { items: 7 * 256 }), { loss: { kind: 'full-softmax' } }).config.epochs;
  expect(sampled).toBe(full);
  expect(full).toBeGreaterThan(3);
});

test('repeats decide what is left out of the ranking', () => {
  expect(resolveForLog(log(600, 165, { repeats: () => 0.05 })).config.evaluation.exclude).toBe('history');
  expect(resolveForLog(log(600, 165, { repeats: () => 0.4 })).config.evaluation.exclude).toBe('none');
});

test('the histories are not read where repeats decide nothing', () => {
  const unread = log(600, 165, {
    repeats: () => {
      throw new Error('read');
    },
  });
  expect(() => resolveForLog(unread)).toThrow('read');
  expect(resolveForLog(unread, { recipe: 'plain' }).choices).toEqual([]);
  expect(resolveForLog(unread, { evaluation: { exclude: 'input' } }).config.evaluation.exclude).toBe('input');
});

test('statistics look at train and validation, never at test events', () => {
  // Validation targets 1 (a repeat) and 5 (new); the test events would be repeats.
  const item = Int32Array.from([1, 2, 1, 1, 3, 4, 5, 3]);
  const source = new MemorySource({ items: 9, offsets: Int32Array.of(0, 4, 8), item });
  const { pairsWithin, repeats, ...rest } = logStatistics(source);
  expect(rest).toEqual({
    users: 2,
    items: 9,
    events: 4,
    hasTime: false,
    length: { mean: 2, median: 2, p90: 2, max: 2 },
    validation: 2,
  });
  expect(repeats()).toBe(0.5);
  expect(pairsWithin(100)).toBe(2);
});

test('the warm-up is never longer than a third of the run', () => {
  expect(resolveForLog(log(600, 165)).config.optimizer.schedule.warmup).toBe(64);
  const short = [{ epochs: 1 }, { epochs: 2 }, { maxSteps: 30 }, { epochs: 1, batch: { users: 100 } }];
  for (const given of short) {
    const { config } = resolveForLog(log(600, 165), given);
    expect(config.optimizer.schedule.warmup).toBeLessThanOrEqual(32);
  }
});
