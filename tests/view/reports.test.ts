// The reports of a run, and the comparison of two runs, as printed by the command line.
import { spawnSync } from 'node:child_process';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { train } from '../../src/index.js';
import { RunViewer, viewRun } from '../../src/view/run-view.js';
import { SMALL_CONFIG, type SmallRun, smallRun } from '../support/small-run.js';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
let small: SmallRun;
let other: string;
let elsewhere: string;
beforeAll(async () => {
  small = await smallRun({ ...SMALL_CONFIG, epochs: 3 });
  [other, elsewhere] = [join(small.folder, 'other'), join(small.folder, 'elsewhere')];
  await train({ data: join(small.run, 'store'), run: other, config: { ...SMALL_CONFIG, seed: 2 } });
  await train({ data: small.log, run: elsewhere, config: SMALL_CONFIG, prepare: { split: 'user:0.2' } });
});
afterAll(() => small[Symbol.dispose]());

function turbogr(...args: string[]) {
  return spawnSync(process.execPath, [MAIN, ...args], { encoding: 'utf8', cwd: small.folder });
}

test('report.html needs nothing from outside, has light and dark, and says what the run says', () => {
  const page = readFileSync(join(small.run, 'report.html'), 'utf8');
  expect(page).not.toMatch(/<(script|link|img|iframe)\b|@import|url\(|https?:/i);
  expect(page).toContain('prefers-color-scheme:dark');
  const view = viewRun(small.run);
  for (const text of [view.digest!, view.fingerprint, 'first-order Markov', 'What to try next', 'norm_linear_backward'])
    expect(page).toContain(text);
  expect(page.match(/<svg/g)!.length).toBeGreaterThanOrEqual(5);
  expect(page).not.toMatch(/NaN|undefined|\[object/);
  expect(page.length).toBeLessThan(200_000);
});

test('report.md has the same figures as report.json', () => {
  const text = readFileSync(join(small.run, 'report.md'), 'utf8');
  const { test: tested } = viewRun(small.run).report!;
  const { value, margin } = tested!.metrics['model']!['hr@10']!;
  expect(text).toContain(`${value.toFixed(4)} ± ${margin!.toFixed(4)}`);
  expect(text).toContain('## What to try next');
  expect(text).not.toMatch(/NaN|undefined|\[object/);
});

test('the view adds up: time by part, state, epochs', () => {
  const view = viewRun(small.run);
  const { wall, training, validation, checkpoints, other: rest } = view.time;
  expect(training + validation + checkpoints + rest).toBeCloseTo(wall, 6);
  expect(view).toMatchObject({ state: 'finished', epoch: 3, epochs: 3, metric: 'ndcg@10' });
  expect(view.validations).toHaveLength(3);
  expect(Object.keys(view.baselines!)).toContain('popularity');
});

test('a run without a sign of life, one that diverged, and one below a baseline raise alerts', () => {
  const path = join(small.folder, 'alerts');
  spawnSync('cp', ['-r', other, path]);
  const events = readFileSync(join(path, 'events.jsonl'), 'utf8')
    .split('\n')
    .filter(line => !line.includes('"finished"'));
  writeFileSync(join(path, 'events.jsonl'), `${events.join('\n').trim()}\n`);
  const kinds = (now?: number) => {
    const viewer = new RunViewer(path);
    viewer.refresh();
    return viewer.view(now).alerts.map(({ kind }) => kind);
  };
  expect(kinds()).not.toContain('stalled');
  expect(kinds(Date.now() + 3_600_000)).toContain('stalled');
  const failed = { time: new Date().toISOString(), kind: 'failed', step: 4, code: 'diverged', message: 'loss' };
  const high = {
    time: new Date().toISOString(),
    kind: 'baselines',
    step: 4,
    metric: 'ndcg@10',
    values: { popularity: 2 },
  };
  appendFileSync(join(path, 'events.jsonl'), `${JSON.stringify(high)}\n${JSON.stringify(failed)}\n`);
  expect(kinds()).toEqual(expect.arrayContaining(['not-finite', 'below-baseline']));
});

test('compare: config, figures, paired significance; different data only when asked for', () => {
  const { status, stdout } = turbogr('compare', 'run', 'other', '--html', 'page.html');
  expect(status).toBe(0);
  expect(stdout).toMatch(/^seed +1 +2$/m);
  expect(stdout).toMatch(/^ndcg@10 .*p [=<]/m);
  expect(readFileSync(join(small.folder, 'page.html'), 'utf8')).toContain('<svg');

  const same: unknown = JSON.parse(turbogr('compare', 'run', 'run', '--json').stdout);
  expect(same).toMatchObject({ sameData: true, differences: [], cases: { better: 0, worse: 0 } });

  const refused = turbogr('compare', 'run', 'elsewhere');
  expect(refused.status).toBe(2);
  expect(refused.stderr).toContain('different data');
  const shown = turbogr('compare', 'run', 'elsewhere', '--anyway');
  expect(shown.status).toBe(0);
  expect(shown.stdout).toContain('cannot be compared');
  expect(shown.stdout).not.toMatch(/p [=<] 0/);
});
