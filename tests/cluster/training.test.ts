// The digest of a run does not depend on the number of ranks or threads, overlap, the MPI, or the number of ranks on which it was
// resumed.

import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { prepare } from '../../src/data/prepare/prepare.js';
import { synthesize } from '../../src/data/synth/synthesize.js';
import { launch, MAIN, MPIS, run } from './mpi.js';

const folder = mkdtempSync(join(tmpdir(), 'turbogr-ranks-'));
const store = join(folder, 'store');
const READY = MPIS.length > 0;
const SMALL = [
  'model.d=16',
  'model.blocks=1',
  'model.maxLength=50',
  'batch.tokens=256',
  'batch.lanes=5',
  'epochs=1',
  'maxSteps=6',
  'optimizer.clip=1',
];
/** What a digest must not depend on is tried for each of these. */
const CASES = {
  'hstu, sampled softmax, adamw': [],
  'fuxi, full softmax, lazy-adam': ['model.kind=fuxi', 'loss.kind=full-softmax', 'optimizer.table=lazy-adam'],
  'sasrec, bce, row-adagrad, average': [
    'model.kind=sasrec',
    'loss.kind=bce',
    'optimizer.table=row-adagrad',
    'optimizer.ema=0.9',
  ],
};
let made = 0;

beforeAll(async () => {
  if (!READY) return;
  const log = join(folder, 'log.csv');
  await synthesize({ out: log, users: 150, videos: 150, meanLength: 40, margin: false });
  await prepare({ files: [log], out: store });
}, 60_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Later settings replace earlier ones; a setting without a value removes one. */
function trainFlags(path: string, settings: readonly string[]): string[] {
  const last = new Map([...SMALL, ...settings].map(setting => [setting.split('=')[0], setting]));
  const given = [...last.values()].filter(setting => !setting.endsWith('='));
  return ['train', store, '--run', path, '--json', ...given.flatMap(setting => ['--set', setting])];
}

interface Outcome {
  digest: string;
  step: number;
  losses: number[];
}

function outcomeOf(path: string): Outcome {
  const { digest, step }: Outcome = JSON.parse(readFileSync(join(path, 'report.json'), 'utf8'));
  const events = readFileSync(join(path, 'events.jsonl'), 'utf8').trim().split('\n');
  const steps = events.map((line): { kind: string; loss: number } => JSON.parse(line)).filter(e => e.kind === 'step');
  return { digest, step, losses: steps.map(({ loss }) => loss) };
}

async function alone(settings: readonly string[]): Promise<Outcome> {
  const path = join(folder, `run-${++made}`);
  const { code, stderr } = await run(process.execPath, [MAIN, ...trainFlags(path, [...settings, 'threads=1'])]);
  expect(stderr).not.toContain('turbogr: ');
  expect(code).toBe(0);
  return outcomeOf(path);
}

async function together(ranks: number, settings: readonly string[], kind = MPIS[0]!): Promise<Outcome> {
  const path = join(folder, `run-${++made}`);
  const { code, stderr } = await launch(kind, ranks, ...trainFlags(path, settings));
  expect(stderr).not.toContain('turbogr: ');
  expect(code).toBe(0);
  return outcomeOf(path);
}

test.skipIf(!READY).each(Object.entries(CASES))('%s: 1, 2 and 3 ranks give the same bits', async (_name, settings) => {
  const expected = await alone(settings);
  expect(await together(2, [...settings, 'threads=2'])).toEqual(expected);
  expect(await together(3, [...settings, 'threads=1', 'overlap=off'])).toEqual(expected);
});

test.skipIf(!READY)('exact has the bits of 0, also with more lanes per rank than one call can compare', async () => {
  const settings = [
    'model.d=128', // 77 KB of item rows: the table is sharded
    'batch.tokens=50',
    'batch.lanes=100',
    'epochs=3',
    'optimizer.table=row-adagrad',
    'loss.kind=sampled-softmax',
    'loss.negatives.count=4',
    'optimizer.clip=', // with it, rows that the next step reads do not go first
    'threads=1',
  ];
  const expected = await alone(settings);
  expect(await together(2, [...settings, 'staleness=exact'])).toEqual(expected);
});

test.skipIf(MPIS.length < 2)('both MPIs give the same bits, also with lanes that have no work', async () => {
  const settings = ['batch.tokens=2000', 'batch.lanes=9', 'maxSteps=3'];
  const expected = await alone(settings);
  for (const kind of MPIS) expect(await together(4, [...settings, 'threads=1'], kind)).toEqual(expected);
});

test.skipIf(!READY)('a run that was stopped on 3 ranks goes on, on 2 and then on 1', async () => {
  const settings = ['epochs=3', 'maxSteps=1000', 'checkpoint.every=4', 'threads=1'];
  const expected = await alone(settings);
  const path = join(folder, 'moved');
  const child = spawn(process.execPath, [MAIN, 'launch', '-n', '3', ...trainFlags(path, settings)], {
    stdio: 'ignore',
  });
  const ended = new Promise(resolve => child.once('close', resolve));
  const checkpoints = () => (existsSync(join(path, 'checkpoints')) ? readdirSync(join(path, 'checkpoints')) : []);
  while (checkpoints().length === 0 && child.exitCode === null) await sleep(50);
  child.kill('SIGINT');
  await ended;
  expect(existsSync(join(path, 'report.json'))).toBe(true); // it finished its step and said so
  const two = await launch(MPIS[0]!, 2, ...trainFlags(path, settings));
  expect(two.code).toBe(0);
  const { code } = await run(process.execPath, [MAIN, 'resume', path]);
  expect(code).toBe(0);
  expect(outcomeOf(path)).toEqual(expected);
});

test.skipIf(!READY)('rows of a divided table, fetched ahead, go on from 2 ranks to 1 and to 4 in groups', async () => {
  const settings = [
    'model.d=128', // 64 KB are divided
    'loss.kind=sampled-softmax',
    'loss.negatives.count=4',
    'optimizer.table=lazy-adam',
    'staleness=2',
    'threads=1',
    'maxSteps=1000',
    'optimizer.schedule.kind=constant',
    'optimizer.schedule.warmup=0',
  ];
  const expected = await alone([...settings, 'epochs=3']);
  const path = join(folder, 'divided');
  const files: string[] = [];
  for (const [ranks, groupSize, epochs] of [
    [2, 2, 1],
    [1, 1, 2],
    [4, 2, 3],
  ] as const) {
    const flags = trainFlags(path, [...settings, `groupSize=${groupSize}`, `epochs=${epochs}`]);
    const { code, stderr } =
      ranks === 1 ? await run(process.execPath, [MAIN, ...flags]) : await launch(MPIS[0]!, ranks, ...flags);
    expect(stderr).not.toContain('turbogr: ');
    expect(code).toBe(0);
    const newest = readdirSync(join(path, 'checkpoints')).sort().at(-1)!;
    files.push(...readdirSync(join(path, 'checkpoints', newest)));
  }
  const written = ['weights-0-of-2.safetensors', 'stale-1-of-2.safetensors', 'moments-3-of-4.safetensors'];
  expect(files).toEqual(expect.arrayContaining(written));
  expect(outcomeOf(path)).toEqual(expected);
  const evaluated = await run(process.execPath, [MAIN, 'evaluate', path, '--json', '--part', 'validation']);
  expect(evaluated.code).toBe(0);
});

test.skipIf(!READY)('more ranks than lanes are refused before anything is trained', async () => {
  const { code, stdout } = await launch(MPIS[0]!, 2, ...trainFlags(join(folder, 'idle'), ['batch.lanes=1']));
  expect(stdout).toContain('batch.lanes is 1, and a step cannot be divided over 2 ranks');
  expect(code).toBe(2);
});
