import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { prepare, resolveConfig, synthesize, tune } from '../../src/index.js';
import { readConfigFile } from '../../src/config/resolve.js';
import { drawCandidates } from '../../src/config/search-space.js';

const folder = mkdtempSync(join(tmpdir(), 'turbogr-tune-'));
const store = join(folder, 'store');
const SEARCH = {
  store,
  folder: join(folder, 'search'),
  minutes: 5,
  config: [{ epochs: 2, model: { maxLength: 16 }, evaluation: { cutoffs: [10] }, batch: { tokens: 512 } }],
};

beforeAll(async () => {
  const log = join(folder, 'log.csv');
  await synthesize({ out: log, users: 60, videos: 60, meanLength: 12, margin: false });
  await prepare({ files: [log], out: store });
}, 60_000);
afterAll(() => rmSync(folder, { recursive: true }));

test('candidates are the same for a seed, valid, and begin with what the rules choose', () => {
  const candidates = drawCandidates(30, 4);
  expect(candidates).toEqual(drawCandidates(30, 4));
  expect(candidates).not.toEqual(drawCandidates(30, 5));
  expect(candidates[0]).toEqual({});
  for (const candidate of candidates) expect(() => resolveConfig(candidate)).not.toThrow();
});

test('a search halves its candidates, keeps a leaderboard and writes the winner; test events stay untouched', async () => {
  const stop = new AbortController();
  const first = await tune({
    ...SEARCH,
    signal: stop.signal,
    onTrial: ({ candidate }) => {
      if (candidate === 4) stop.abort();
    },
  });
  expect(first).toMatchObject({ stopped: true });
  expect(first.leaderboard).toHaveLength(5);
  const begun = statSync(join(SEARCH.folder, 'trials/rung-0-candidate-2/events.jsonl')).mtimeMs;

  const { leaderboard, winner, stopped } = await tune(SEARCH);
  expect(stopped).toBe(false);
  expect(statSync(join(SEARCH.folder, 'trials/rung-0-candidate-2/events.jsonl')).mtimeMs).toBe(begun);
  expect(leaderboard.map(({ rung }) => rung)).toEqual([2, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
  const values = (rung: number) => leaderboard.filter(trial => trial.rung === rung).map(({ value }) => value);
  expect(values(0)).toEqual(values(0).toSorted((a, b) => b - a));
  const best = (rung: number) => leaderboard.find(trial => trial.rung === rung)!.candidate;
  expect(best(2)).toBe(best(1));
  expect(resolveConfig(await readConfigFile(winner)).model.maxLength).toBe(16);
  for (const name of ['rung-0-candidate-0', 'rung-2-candidate-' + best(2)]) {
    const report: unknown = JSON.parse(readFileSync(join(SEARCH.folder, 'trials', name, 'report.json'), 'utf8'));
    expect(report).not.toHaveProperty('test');
  }
  await expect(tune({ ...SEARCH, config: [{ epochs: 1 }] })).rejects.toThrow('another budget');
  expect(existsSync(join(SEARCH.folder, 'leaderboard.json'))).toBe(true);
}, 120_000);
