import { expect, test } from 'vitest';
import { describeStart } from '../../src/cli/describe.js';
import { resolveConfig } from '../../src/config/resolve.js';
import type { TrainStart } from '../../src/jobs/train-report.js';

function lines(tokensPerEpoch: number, tokens: number, more: Partial<TrainStart> = {}): string[] {
  const config = resolveConfig({ batch: { tokens } });
  const counts = { users: 10, items: 20, totalSteps: 30, denseParameters: 5, blockParameters: 4, tableParameters: 9 };
  const nothing = { choices: [], prepared: undefined, untrainedEvents: 0, trainingEvents: 0, fingerprint: 'f' };
  const start = { run: 'runs/x', config, model: 'hstu', tokensPerEpoch, ...counts, ...nothing, peakFlops: 1, ...more };
  return describeStart(start).split('\n');
}

test('a log too small for its batches is told, with a size that fits', () => {
  expect(lines(6686, 8192).at(-1)).toContain('--set batch.tokens=256');
  expect(lines(6686, 256)).toHaveLength(3);
  expect(lines(1_000_000, 8192)).toHaveLength(3);
  // A batch must hold the longest sequence, so there is nothing smaller to advise.
  expect(lines(300, 200)).toHaveLength(3);
});

test('what was guessed, noted, refused, filtered and never trained on is said at every start', () => {
  const prepared = {
    rows: 1000,
    bad: { rows: 12, share: 0.012, reasons: { 'unreadable time': 10, 'user \u001b missing': 2 } },
    columns: { user: 'User ID', item: 'sku' },
    guessed: ['user'],
    notes: ['dates are read as %d/%m/%Y'],
    filters: [{ name: 'at least 5 events per user', removed: 30 }],
    rejects: 'runs/x/store/rejects.csv',
  };
  const told = lines(1_000_000, 8192, { prepared, untrainedEvents: 700, trainingEvents: 1000 });
  expect(told.slice(1, 6)).toEqual([
    'columns: user = User ID (guessed), item = sku; --user, --item, --time, --action name others',
    'dates are read as %d/%m/%Y',
    String.raw`bad rows left out: 12 (1.20 %): 10 unreadable time, 2 user \x1b missing; all in runs/x/store/rejects.csv`,
    'filter at least 5 events per user: 30 events left out',
    "never trained on: 700 of 1,000 training events (70.0 %), older than a user's newest 201; --set window=sliding trains on all",
  ]);
});

test('what was chosen is said, and what was measured with its figures', () => {
  const fromLog = { key: 'model.maxLength', value: 50, reason: 'the longest history' };
  const measured = {
    key: 'loss.kind',
    value: 'full-softmax',
    reason: 'full 3 ms, sampled 4 ms',
    measured: true,
  } as const;
  expect(lines(1_000_000, 8192, { choices: [fromLog, measured] }).slice(3)).toEqual([
    'chosen from the log: model.maxLength 50',
    'chosen by measuring: loss.kind full-softmax; full 3 ms, sampled 4 ms',
  ]);
  expect(lines(1_000_000, 8192, { choices: [measured] })).toHaveLength(4);
});

test('segments of negatives that the loss would wait for are told, with a size that it does not wait for', () => {
  const told = (
    negatives: { segment: number; storage: 'f16' | 'f32'; count?: number; pool?: number },
    items = 200_000,
  ) =>
    lines(1_000_000, 8192, { items, config: resolveConfig({ batch: { tokens: 8192 }, loss: { negatives } }) }).slice(3);
  expect(told({ storage: 'f16', segment: 512 })).toEqual([
    'segments of 512 positions: two of 16 are fetched while the encoder runs, and the loss waits for the others; ' +
      '--set loss.negatives.segment=782 hides all of them',
  ]);
  expect(told({ storage: 'f16', segment: 782 })).toEqual([]);
  expect(told({ storage: 'f16', segment: 0 })).toEqual([]);
  expect(told({ storage: 'f16', segment: 100, count: 64, pool: 64 })).toEqual([]); // one position
  expect(told({ storage: 'f32', segment: 100 }).join()).toContain('segment=782');
  expect(told({ storage: 'f32', segment: 1 }, 3883)).toEqual([]); // small enough to be read where it is
});
