// Messages for a full disk, a kill between the renames of a replacement, and control characters in a log.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { explainDeath, explainFailure } from '../../../src/data/prepare/failures.js';
import { prepare } from '../../../src/data/prepare/prepare.js';
import { reportText, summaryLines } from '../../../src/data/prepare/report-text.js';
import { SequenceStore } from '../../../src/data/store/sequence-store.js';
import { partialFolder, replacedFolder } from '../../../src/data/store/store-place.js';
import { findData } from '../../../src/jobs/open-data.js';
import { UserError } from '../../../src/util/errors.js';
import { Workbench } from './workbench.js';

const bench = new Workbench();
afterAll(() => bench.remove());

/** A process id that no process has. */
const GONE = spawnSync('true').pid;

function mountSmallDisk(): string | undefined {
  const folder = mkdtempSync(join(bench.folder, 'disk-'));
  const mounted =
    process.getuid?.() === 0 && spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', folder]).status === 0;
  return mounted ? folder : undefined;
}

const disk = mountSmallDisk();
afterAll(() => {
  if (disk) execFileSync('umount', [disk]);
});

describe('a full disk', () => {
  it.skipIf(!disk)(
    'is called by its name, and leaves nothing behind (skipped where no disk can be mounted)',
    async () => {
      const rows = Array.from(
        { length: 400_000 },
        (_, i) => `u${(i * 7919) % 90_001},i${(i * 104_729) % 70_001},${i + 1}`,
      );
      const file = bench.write('large.csv', `user,item,time\n${rows.join('\n')}\n`);
      const failed = prepare({ files: [file], out: join(disk ?? '', 'store'), memory: '120MB' });
      await expect(failed).rejects.toMatchObject({
        code: 'disk-full',
        remedy: expect.stringMatching(/^Free some space/),
      });
      expect(readdirSync(disk ?? '')).toEqual([]);
    },
  );

  it('is recognised in what DuckDB says, and in the last words of a process that aborted', () => {
    const spill = new Error(
      'Out of Memory Error: failed to offload data block of size 256.0 KiB (6.0 MiB/6.0 MiB used).',
    );
    expect(explainFailure(spill, bench.folder)).toMatchObject({ code: 'disk-full' });
    expect(explainFailure(new Error('Out of Memory Error: could not allocate block'), bench.folder)).toMatchObject({
      code: 'out-of-memory',
      remedy: expect.stringMatching(/Raise --memory/),
    });
    expect(explainFailure(new Error('anything else'), bench.folder)).toBeUndefined();
    const said =
      'terminate called after throwing an instance of duckdb::IOException\n  what(): No space left on device\n';
    expect(explainDeath('SIGABRT', { said, folder: bench.folder })).toMatchObject({
      code: 'disk-full',
      message: expect.stringMatching(/is full \(No space left on device\)$/),
    });
    expect(explainDeath('SIGSEGV', { said: '', folder: bench.folder }).remedy).not.toMatch(/memory/);
    expect(explainDeath('SIGKILL', { said: '', folder: bench.folder }).remedy).toMatch(/lower --memory/);
  });
});

describe('a store that is replaced', () => {
  const small = bench.write('small.csv', 'user,item,time\n1,2,3\n1,3,4\n');

  it.each(['open', 'find data', 'prepare again'])(
    'is found again when its replacement was killed between the renames: %s',
    async how => {
      const { store: before } = await bench.build({ files: [small] });
      const { store: after } = await bench.build({ files: [small], split: 'none' });
      const out = join(bench.folder, `replaced-${how.length}`);
      const partial = partialFolder(out, GONE);
      renameSync(before.folder, replacedFolder(partial));
      renameSync(after.folder, partial);
      const found = how === 'find data' ? await findData({ data: out }) : { store: out };
      expect(found).toEqual({ store: out });
      const refusal =
        how !== 'prepare again' ? undefined : await prepare({ files: [small], out }).catch((error: unknown) => error);
      expect(refusal === undefined || (refusal instanceof UserError && refusal.code === 'store-exists')).toBe(true);
      expect(SequenceStore.open(out).fingerprint).toBe(after.fingerprint);
    },
  );

  it('is the old one when the new one is not complete', async () => {
    const { store: before } = await bench.build({ files: [small] });
    const out = join(bench.folder, 'kept');
    const partial = partialFolder(out, GONE);
    renameSync(before.folder, replacedFolder(partial));
    mkdirSync(partial);
    expect(SequenceStore.open(out).fingerprint).toBe(before.fingerprint);
    expect(existsSync(replacedFolder(partial))).toBe(false);
  });
});

describe('control characters of a log', () => {
  it('reach no terminal', async () => {
    const esc = '\u001b[31mred\u001b[0m\u0007';
    const rows = [`${esc},1,1`, `${esc},1,2`, `u,${esc},3`, 'u,,4'].map(row => row.replaceAll('"', ''));
    const file = bench.write('escape.csv', `user,item,time\n${rows.join('\n')}\n${esc},${esc}\n`);
    const { report } = await bench.build({ files: [file], maxBad: 0.9 });
    const shown = [reportText(report), ...summaryLines(report)].join('\n');
    // oxlint-disable-next-line no-control-regex -- they are what is looked for
    expect(shown).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
    expect(shown).toContain(String.raw`\x1b[31mred`);
    const failed = bench.build({ files: [file] });
    await expect(failed).rejects.toMatchObject({ message: expect.stringContaining(String.raw`\x1b[31m`) });
  });

  it('are told what was read, guessed, refused and filtered', async () => {
    const rows = Array.from({ length: 20 }, (_, i) => `u${i % 3},i${i % 5},${1_650_000_000 + i}`);
    const file = bench.write('told.csv', `User ID,sku,Date\n${rows.join('\n')}\nu9,i1,1650000050\nu1,i1,soon\n`);
    const { report } = await bench.build({ files: [file], minUser: 2, maxBad: 0.1 });
    expect(summaryLines(report)).toEqual([
      `read 22 rows of ${file}: user = User ID (guessed), item = sku (guessed), time = Date (guessed)`,
      'bad rows 1 (4.55 %), left out, all in rejects.csv:',
      '           1  unreadable time',
      `  ${file}:23  unreadable time: user=u1 item=i1 time=?`,
      'filter at least 2 events per user: removed 1 events, 20 left',
    ]);
  });
});
