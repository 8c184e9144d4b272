// An evaluation does not depend on the ranks that share it: every figure, segment, interval, rank and fitted weight equals that of
// one rank, to the bit; and no rank needs memory for rows that it does not own.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { prepare } from '../../src/data/prepare/prepare.js';
import { synthesize } from '../../src/data/synth/synthesize.js';
import { launch, MPIS } from './mpi.js';

const PROGRAM = fileURLToPath(new URL('./programs/evaluate.mjs', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'turbogr-evaluation-'));
const READY = MPIS.length > 0;
const [STORE, FEW, LARGE] = [join(folder, 'store'), join(folder, 'few'), join(folder, 'large')];

const SMALL = [
  'model.d=16',
  'model.blocks=1',
  'model.maxLength=30',
  'loss.kind=sampled-softmax',
  'optimizer.table=lazy-adam',
];
/** What is evaluated: ways are compared within one of these. */
const SETTINGS: Readonly<Record<string, { store: string; settings: readonly string[] }>> = {
  'hstu, history left out': { store: STORE, settings: ['evaluation.exclude=history'] },
  'fuxi, nothing left out, cosines': {
    store: STORE,
    settings: [
      'model.kind=fuxi',
      'evaluation.exclude=none',
      'loss.normalizeUser=true',
      'loss.normalizeItem=true',
      'loss.temperature=0.05',
    ],
  },
  'hstu, what was read left out, average, two targets of a user, an odd number of users': {
    store: STORE,
    settings: ['evaluation.exclude=input', 'evaluation.targets=2', 'evaluation.users=37', 'optimizer.ema=0.9'],
  },
  'fuxi, log-likelihood': {
    store: STORE,
    settings: ['model.kind=fuxi', 'evaluation.metric=loglik', 'loss.temperature=0.1'],
  },
  'hstu, full softmax: a table on every rank': { store: STORE, settings: ['loss.kind=full-softmax'] },
  'hstu, fewer users than ranks': { store: FEW, settings: ['model.d=128'] },
};
/** Ranks and the size of a group. */
const WAYS = [
  [1, 1],
  [2, 2],
  [2, 1],
  [3, 3],
  [4, 2],
  [4, 4],
] as const;

interface Found {
  name: string;
  result: object;
  agreed: boolean;
  held: { rows: number; validation: number; test: number };
}

let all: readonly Found[] = [];

beforeAll(async () => {
  if (!READY) return;
  const log = join(folder, 'log.csv');
  await synthesize({ out: log, users: 90, videos: 1500, meanLength: 40, margin: false });
  await prepare({ files: [log], out: STORE });
  await prepare({ files: [log], out: LARGE, catalogue: 50_000 });
  const events = Array.from({ length: 600 }, (_, i) => `${i % 3},${(i * 7) % 200},${1000 + i}\n`);
  writeFileSync(join(folder, 'few.csv'), `user,item,time\n${events.join('')}`);
  await prepare({ files: [join(folder, 'few.csv')], out: FEW });
  const ways = Object.entries(SETTINGS).flatMap(([setting, { store, settings }]) =>
    WAYS.map(([ranks, groupSize]) => way(setting, { store, ranks, groupSize, settings })),
  );
  const wide = { store: LARGE, settings: ['model.d=256', 'model.maxLength=20'] };
  for (const ranks of [1, 4]) ways.push(way('large', { ...wide, ranks, groupSize: ranks }));
  all = await results(ways);
}, 900_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Every way, in one start of the ranks. */
async function results(ways: readonly How[]): Promise<Found[]> {
  const { stdout, stderr, code } = await launch(MPIS[0]!, 4, PROGRAM, JSON.stringify(ways));
  expect(stderr).toBe('');
  expect(code).toBe(0);
  return stdout
    .trim()
    .split('\n')
    .map((line): Found => JSON.parse(line));
}

interface How {
  store: string;
  ranks: number;
  groupSize: number;
  settings: readonly string[];
}

function way(setting: string, { settings, ...how }: How): How & { name: string } {
  const last = new Map([...SMALL, ...settings].map(entry => [entry.split('=')[0], entry]));
  return { name: `${setting}: ${how.ranks} ranks in groups of ${how.groupSize}`, ...how, settings: [...last.values()] };
}

test.skipIf(!READY).each(Object.keys(SETTINGS))('%s', setting => {
  const ways = all.filter(({ name }) => name.startsWith(`${setting}:`));
  expect(ways).toHaveLength(WAYS.length);
  for (const { name, result, agreed } of ways) {
    expect({ name, agreed, result }).toEqual({ name, agreed: true, result: ways[0]!.result });
  }
});

test.skipIf(!READY)('no rank needs room for rows that it does not own', () => {
  const [one, four] = all.filter(({ name }) => name.startsWith('large:'));
  const table = one!.held.rows * 256 * 4;
  expect(four!.held.rows).toBe(Math.ceil(one!.held.rows / 4));
  expect(one!.held.test).toBeGreaterThan(table); // a copy of the table is seen
  // A rank needs its rows once more, normalised or with the columns of the priors, and states and rows of a batch.
  expect(four!.held.validation).toBeLessThan(table / 2);
  expect(four!.held.test).toBeLessThan(one!.held.test / 2);
});
