// `turbogr refit`: trained once more on the validation events too, with what they chose in the first run.

import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { type ConfigInput, evaluate, refit, synthesize, train, type TrainReport } from '../../src/index.js';
import { RunFolder } from '../../src/train/run-folder.js';

const folder = mkdtempSync(join(tmpdir(), 'turbogr-refit-'));
const [log, parent] = [join(folder, 'log.csv'), join(folder, 'parent')];
const CONFIG: ConfigInput = {
  recipe: 'plain',
  model: { d: 16, blocks: 1, maxLength: 20 },
  batch: { tokens: 512 },
  optimizer: { lr: 2e-2 },
  epochs: 6,
  priors: 'auto',
};
let first: TrainReport;
let second: TrainReport;

beforeAll(async () => {
  await synthesize({ out: log, users: 120, videos: 60, meanLength: 20, margin: false });
  first = await train({ data: log, config: CONFIG, run: parent });
  second = await refit(parent);
}, 120_000);
afterAll(() => rmSync(folder, { recursive: true }));

function readPriors(run: string): { weights: unknown; cases?: unknown } {
  const file: unknown = JSON.parse(readFileSync(join(run, 'priors.json'), 'utf8'));
  return z.object({ weights: z.unknown(), cases: z.unknown().optional() }).parse(file);
}

test('a new run has the epochs and priors of the first one, and trains on its validation events', async () => {
  const { config, parent: origin } = RunFolder.open(`${parent}-refit`).description;
  expect(config).toMatchObject({ trainOn: 'train+validation', epochs: first.best!.epoch + 1 });
  expect(origin).toMatchObject({ identity: RunFolder.open(parent).identity, step: first.best!.step });
  expect(second.epoch).toBe(first.best!.epoch + 1);
  expect(second.step).toBeGreaterThanOrEqual(first.best!.step); // as many epochs, of more events
  expect(second.best).toBe(null);
  expect(second.digest).not.toBe(first.digest);
  expect(readPriors(parent).weights).not.toBe(null);
  expect(readPriors(`${parent}-refit`)).toEqual({ weights: readPriors(parent).weights });
  expect(second.test!.priors).toEqual(first.test!.priors);
  expect((await evaluate(`${parent}-refit`)).metrics).toEqual(second.test!.metrics);
});

test('it has the bits of a training with these settings', async () => {
  const { config } = RunFolder.open(`${parent}-refit`).description;
  const plain = await train({
    data: log,
    config: { ...CONFIG, trainOn: 'train+validation', epochs: first.best!.epoch + 1, priors: config.priors },
    run: join(folder, 'plain'),
  });
  expect(plain.digest).toBe(second.digest);
  expect(plain.test!.metrics).toEqual(second.test!.metrics);
});

test('the same command continues it', async () => {
  const again = await refit(parent);
  expect(again).toMatchObject({ digest: second.digest, step: second.step });
});

test('runs that chose nothing on validation are refused', async () => {
  await expect(refit(`${parent}-refit`)).rejects.toThrow(/already trains on its validation events/);
  const cut = join(folder, 'cut');
  cpSync(parent, cut, { recursive: true });
  writeFileSync(join(cut, 'report.json'), JSON.stringify({ ...first, reason: 'interrupted' }));
  await expect(refit(cut)).rejects.toThrow(/has not ended/);
  const unvalidated = join(folder, 'unvalidated');
  await train({ data: log, config: { ...CONFIG, epochs: 1 }, prepare: { split: 'none' }, run: unvalidated });
  await expect(refit(unvalidated)).rejects.toThrow(/no validation that chose an epoch/);
});
