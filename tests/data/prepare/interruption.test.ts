// A run that does not finish leaves nothing behind: on Ctrl-C, on an error, when its child is killed, and, by the next
// run, after kill -9. These tests start real processes from the compiled program.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { prepare } from '../../../src/data/prepare/prepare.js';
import { Workspace } from '../../../src/data/prepare/workspace.js';
import { Workbench, csv } from './workbench.js';

const bench = new Workbench();
afterAll(() => bench.remove());
const CLI = resolve('dist/cli/main.js');

/** Large enough to be still at work when the signal comes. */
const large = bench.write(
  'large.csv',
  csv(
    Array.from({ length: 200_000 }, (_, i) => ({
      user: `u${i % 999}`,
      item: `i${(i * 7919) % 50_021}`,
      time: 1_600_000_000 + (i % 5000),
    })),
  ),
);
const small = bench.write('small.csv', csv([{ user: 'a', item: 'b', time: 1_600_000_000 }]));

/** A folder of one test, and the names in it that a killed run would leave. */
function place(name: string) {
  const folder = join(bench.folder, name);
  mkdirSync(folder);
  return { out: join(folder, 'store'), names: () => readdirSync(folder) };
}

async function startedRun(out: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, [CLI, 'prepare', large, '--out', out, '--threads', '1'], { stdio: 'ignore' });
  const database = join(out, '..', `.store.${child.pid}.partial`, 'scratch', 'stage.duckdb');
  while (!existsSync(database) && child.exitCode === null) await setTimeout(10);
  expect(child.exitCode).toBeNull();
  return child;
}

function childOf(pid: number | undefined): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim());
}

describe('an unfinished run', () => {
  it.each(['SIGINT', 'SIGTERM'] as const)('leaves nothing behind on %s', async signal => {
    const { out, names } = place(signal);
    const child = await startedRun(out);
    child.kill(signal);
    const [status] = await once(child, 'exit');
    expect(status).toBe(signal === 'SIGTERM' ? 143 : 130);
    expect(names()).toEqual([]);
  });

  it.skipIf(!existsSync('/proc/self/task'))(
    'leaves nothing behind when its working process is killed (needs /proc)',
    async () => {
      const { out, names } = place('worker');
      const child = await startedRun(out);
      process.kill(childOf(child.pid), 'SIGKILL');
      const [status] = await once(child, 'exit');
      expect(status).toBe(2);
      expect(names()).toEqual([]);
    },
  );

  it('is cleaned up by the next run after kill -9, which leaves the folders of living runs alone', async () => {
    const { out, names } = place('kill');
    const child = await startedRun(out);
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(names()).toEqual([`.store.${child.pid}.partial`]);
    mkdirSync(join(out, '..', `.store.${process.ppid}.partial`));
    mkdirSync(join(out, '..', `.store.other.${child.pid}.partial`));
    await prepare({ files: [small], out });
    expect(names().sort()).toEqual(
      [`.store.${process.ppid}.partial`, `.store.other.${child.pid}.partial`, 'store'].sort(),
    );
  });

  it('leaves nothing behind when the caller gives up or the log is wrong', async () => {
    const { out, names } = place('abort');
    const controller = new AbortController();
    const givenUp = prepare(
      { files: [large], out },
      { signal: controller.signal, onProgress: () => controller.abort() },
    );
    await expect(givenUp).rejects.toThrow(/interrupted/);
    await expect(prepare({ files: [large], out }, { signal: controller.signal })).rejects.toThrow(/abort/);
    await expect(prepare({ files: [small], out, item: 'nothing' })).rejects.toThrow(/has no column 'nothing'/);
    await expect(prepare({ files: [small], out, maxBad: 7 })).rejects.toThrow(/option maxBad/);
    expect(names()).toEqual([]);
  });
});

describe('the place of a store', () => {
  it('is never overwritten by accident', async () => {
    const { out } = place('exists');
    await prepare({ files: [small], out });
    await expect(prepare({ files: [small], out })).rejects.toThrow(/already holds a store/);
    const replaced = await prepare({ files: [small, small], out, force: true });
    expect(replaced.events).toBe(2);
    expect(() => new Workspace(bench.folder, { force: true })).toThrow(/exists and is not a store/);
  });

  it.each([
    ['a folder with an index.json of its own', ['index.json', 'thesis.txt']],
    ['only an index.json', ['index.json']],
    ['a store with something beside it', ['index.json', 'items.safetensors', 'thesis.txt']],
  ])('is never taken from somebody else, also not by force: %s', (name, files) => {
    const { out } = place(name);
    for (const file of files) bench.write(join(name, 'store', file), '{}');
    expect(() => new Workspace(out, { force: true })).toThrow(/exists and is not a store/);
    expect(readdirSync(out)).toEqual(files);
  });
});
