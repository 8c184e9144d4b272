// A damaged store is refused with a reason: numbers of the index are checked against the files before they are believed,
// the bytes by verify(). Stores of version 1, which lack the newer checks, still open.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SequenceStore } from '../../../src/data/store/sequence-store.js';
import { Workbench, contents } from '../prepare/workbench.js';
import { editIndex } from './edit-index.js';

const bench = new Workbench();
let sound: SequenceStore;
let copies = 0;

/** Two features, text users, integer items, times, actions and a rating. */
beforeAll(async () => {
  const rows = Array.from({ length: 60 }, (_, i) => `u${i % 7},${(i * 5) % 11},${1_650_000_000 + i},${i % 3},${i % 5}`);
  bench.write('items.csv', 'item,colour\n0,red\n1,blue\n');
  const features = [{ of: 'item' as const, files: [join(bench.folder, 'items.csv')], key: 'item' }];
  const files = [bench.write('log.csv', `user,item,time,action,rating\n${rows.join('\n')}\n`)];
  ({ store: sound } = await bench.build({ files, features }));
});
afterAll(() => bench.remove());

function copy(): string {
  const folder = join(bench.folder, `copy-${copies++}`);
  cpSync(sound.folder, folder, { recursive: true });
  return folder;
}

describe('the index of a store', () => {
  it('does not match its checksum once a number in it is edited', () => {
    const folder = copy();
    editIndex(folder, { items: 12 });
    expect(() => SequenceStore.open(folder)).toThrow(/does not match its own checksum/);
  });

  it.each([
    ['users', 2 ** 32],
    ['items', 2 ** 40],
    ['items', 3],
    ['events', 2 ** 32],
    ['events', -1],
    ['users', 1e300],
    ['shards.0.users', 2 ** 32],
    ['shards.0.events', 2 ** 32],
    ['shards.0.firstUser', 1],
    ['shards.0.bytes', 10],
    ['vocabulary.user.size', 2 ** 31],
    ['vocabulary.item.size', 2 ** 31 - 1],
    ['split.train', 2 ** 52],
    ['version', 1],
    ['version', 3],
    ['shards.0.file', '../../x.safetensors'],
    ['shards.0.file', '/etc/passwd'],
    ['split.file', 'users.safetensors'],
    ['split.fingerprint', 'z'.repeat(64)],
  ])('is refused with %s = %j, even with a new checksum, at once', (path, value) => {
    const folder = copy();
    editIndex(folder, { [path]: value }, { seal: true });
    const begin = performance.now();
    expect(() => SequenceStore.open(folder)).toThrow(expect.objectContaining({ code: 'damaged-store' }));
    expect(performance.now() - begin).toBeLessThan(2000);
  });

  it('is refused when it is cut off, no JSON, a pipe or a folder', () => {
    const edits: ((path: string) => void)[] = [
      path => truncateSync(path, 100),
      path => writeFileSync(path, 'null'),
      path => {
        rmSync(path);
        execFileSync('mkfifo', [path]);
      },
      path => {
        rmSync(path);
        mkdirSync(path);
      },
    ];
    for (const edit of edits) {
      const folder = copy();
      edit(join(folder, 'index.json'));
      expect(() => SequenceStore.open(folder)).toThrow(expect.objectContaining({ code: 'damaged-store' }));
    }
  });
});

describe('the files of a store', () => {
  it.each(['events-00000', 'users', 'items', 'split', 'counts', 'features-0-item'])(
    'are refused when %s is missing, a pipe, a link to outside, cut off or longer',
    name => {
      const edits: ((path: string) => void)[] = [
        path => rmSync(path),
        path => {
          rmSync(path);
          execFileSync('mkfifo', [path]);
        },
        path => {
          renameSync(path, join(bench.folder, 'elsewhere'));
          symlinkSync(join(bench.folder, 'elsewhere'), path);
        },
        path => truncateSync(path, 50),
        path => writeFileSync(path, Buffer.concat([readFileSync(path), Buffer.alloc(8)])),
      ];
      for (const edit of edits) {
        const folder = copy();
        edit(join(folder, `${name}.safetensors`));
        expect(() => SequenceStore.open(folder)).toThrow(expect.objectContaining({ code: 'damaged-store' }));
      }
    },
  );

  it.each(['events-00000', 'users', 'items', 'split', 'counts', 'features-0-item'])(
    'do not pass verify() when a bit of %s has flipped',
    async name => {
      const folder = copy();
      const path = join(folder, `${name}.safetensors`);
      const bytes = readFileSync(path);
      bytes[bytes.length - 4] = (bytes.at(-4) ?? 0) ^ 1;
      writeFileSync(path, bytes);
      const opened = (async () => await SequenceStore.open(folder).verify())();
      await expect(opened).rejects.toMatchObject({ code: 'damaged-store' });
    },
  );

  it('may be links that stay in the folder', async () => {
    const folder = copy();
    renameSync(join(folder, 'users.safetensors'), join(folder, 'renamed.safetensors'));
    symlinkSync('renamed.safetensors', join(folder, 'users.safetensors'));
    await expect(SequenceStore.open(folder).verify()).resolves.toBeUndefined();
  });
});

describe('verify()', () => {
  it('computes the fingerprint from the events and does not copy it', async () => {
    const folder = copy();
    editIndex(folder, { 'split.fingerprint': 'a'.repeat(64) }, { seal: true });
    await expect(SequenceStore.open(folder).verify()).rejects.toThrow(/holds events of fingerprint/);
    await sound.verify();
  });

  it('stops when it is told to', async () => {
    await expect(sound.verify(AbortSignal.abort())).rejects.toThrow(/abort/i);
  });

  it('lets other work run between its slices', async () => {
    let ticks = 0;
    const timer = setInterval(() => ticks++, 0);
    await sound.verify();
    clearInterval(timer);
    expect(ticks).toBeGreaterThan(0);
  });
});

describe('what a store says of itself', () => {
  it('tells other actions and features by the content, which the fingerprint does not', async () => {
    const folder = copy();
    editIndex(folder, { 'features.0.of': 'user' }, { seal: true });
    const other = SequenceStore.open(folder);
    expect(other.fingerprint).toBe(sound.fingerprint);
    expect(other.content).not.toBe(sound.content);
    expect(SequenceStore.open(copy()).content).toBe(sound.content);
    const log = readFileSync(join(bench.folder, 'log.csv'), 'utf8').replaceAll(/,2,(\d)\n/g, ',1,$1\n');
    const files = [bench.write('actions.csv', log)];
    const { store } = await bench.build({ files });
    const { store: twin } = await bench.build({ files: [bench.write('twin.csv', log)] });
    const { store: plain } = await bench.build({ files: [join(bench.folder, 'log.csv')] });
    expect([store.fingerprint, twin.content]).toEqual([plain.fingerprint, store.content]);
    expect(store.content).not.toBe(plain.content);
  });

  it('counts the items of train and validation without reading the events', () => {
    const train = new Int32Array(sound.items);
    const both = new Int32Array(sound.items);
    for (let user = 0; user < sound.users; user++) {
      const { items } = sound.sequence(user);
      for (const item of items.subarray(0, sound.split.trainEnd[user])) train[item]!++;
      for (const item of items.subarray(0, sound.split.validationEnd[user])) both[item]!++;
    }
    expect(sound.itemCounts('validation')).toEqual(train);
    expect(sound.itemCounts('test')).toEqual(both);
  });

  it('is the same in a store of version 1, which has no counts, sizes or checksum', async () => {
    const folder = copy();
    const newer = ['shards.0', 'vocabulary.user', 'vocabulary.item', 'split', 'features.0'].map(
      file => `${file}.bytes`,
    );
    const absent = [...newer, 'counts', 'checksum'].map(path => [path, undefined] as const);
    editIndex(folder, { version: 1, ...Object.fromEntries(absent) });
    rmSync(join(folder, 'counts.safetensors'));
    const old = SequenceStore.open(folder);
    await old.verify();
    expect(contents(old)).toEqual(contents(sound));
    expect(old.content).toBe(sound.content);
    expect(old.itemCounts('test')).toBeUndefined();
  });
});
