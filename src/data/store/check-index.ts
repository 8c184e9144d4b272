// Checks that the numbers of an index are consistent with each other and with the file sizes, before anything is read or
// allocated accordingly. Costs one stat per file; verify-store.ts checks the contents.

import { lstatSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { damagedStore } from './damaged-store.js';
import { type FileEntry, type StoreIndex, filesOf } from './store-index.js';

/** Dense ids are i32. */
const MAX_IDS = 2 ** 31 - 1;
const I32 = 4;
const I64 = 8;

export function checkNumbers(path: string, index: StoreIndex): void {
  const { users, items, events, shards, vocabulary, split, version, counts } = index;
  const expect = (holds: boolean, what: string): void => {
    if (!holds) throw damagedStore(path, what);
  };
  expect(users <= MAX_IDS && items <= MAX_IDS, `counts ${users} users and ${items} items: a store has at most 2^31`);
  expect(vocabulary.user.size === users, `has ${users} users and a vocabulary of ${vocabulary.user.size}`);
  expect(vocabulary.item.size <= items, `has ${items} items and a vocabulary of ${vocabulary.item.size}`);
  const parts = split.train + split.validation + split.test;
  expect(parts === events, `has ${events} events, ${parts} of them in the split`);
  let [firstUser, stored] = [0, 0];
  for (const shard of shards) {
    expect(shard.firstUser === firstUser, `${shard.file} should begin at user ${firstUser}, not ${shard.firstUser}`);
    firstUser += shard.users;
    stored += shard.events;
  }
  expect(firstUser === users && stored === events, `has ${users} users and ${events} events; its shards do not`);
  const files = filesOf(index);
  expect(new Set(files.map(({ file }) => file)).size === files.length, 'names a file twice');
  const complete = counts !== undefined && files.every(({ bytes }) => bytes !== undefined);
  expect(version === 1 || complete, `has version ${version} and lacks the counts or the size of a file`);
}

export function checkFiles(folder: string, index: StoreIndex): void {
  const place = realpathSync(folder);
  const { users, vocabulary, shards, split, features } = index;
  const needed = new Map<FileEntry, number>([
    ...shards.map(shard => [shard, I64 * (shard.users + 1) + I32 * shard.events] as const),
    [vocabulary.user, (I64 + I32) * vocabulary.user.size],
    [vocabulary.item, (I64 + I32) * vocabulary.item.size],
    [split, 3 * I32 * users],
    ...features.map(
      table => [table, table.columns.length * (table.of === 'user' ? users : vocabulary.item.size)] as const,
    ),
  ]);
  for (const entry of filesOf(index)) {
    const path = join(folder, entry.file);
    const bytes = sizeInside(path, place);
    if (bytes === undefined) throw damagedStore(path, 'is missing, is not a regular file, or lies outside the store');
    if (entry.bytes !== undefined && entry.bytes !== bytes) {
      throw damagedStore(path, `has ${bytes} bytes, the index says ${entry.bytes}`);
    }
    const least = needed.get(entry) ?? 0;
    if (bytes < least) throw damagedStore(path, `has ${bytes} bytes; what the index says of it needs ${least}`);
  }
}

/** Size of a regular file in this folder, following links only within the folder. */
function sizeInside(path: string, folder: string): number | undefined {
  try {
    const target = lstatSync(path).isSymbolicLink() ? realpathSync(path) : path;
    if (target !== path && dirname(target) !== folder) return undefined;
    const found = lstatSync(target);
    return found.isFile() ? found.size : undefined;
  } catch {
    return undefined;
  }
}
