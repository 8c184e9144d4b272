// A folder of one test: write logs, build stores in this process, read them back as plain rows.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildStore } from '../../../src/data/prepare/build-store.js';
import type { PrepareInput, PrepareReport } from '../../../src/data/prepare/options.js';
import { parseOptions } from '../../../src/data/prepare/prepare.js';
import { SequenceStore } from '../../../src/data/store/sequence-store.js';

export interface Event {
  user: string;
  item: string;
  time: number;
}

export class Workbench {
  readonly folder = mkdtempSync(join(tmpdir(), 'turbogr-prepare-'));
  private stores = 0;

  write(name: string, content: string | Uint8Array): string {
    const path = join(this.folder, name);
    mkdirSync(join(path, '..'), { recursive: true });
    writeFileSync(path, content);
    return path;
  }

  async build(input: Omit<PrepareInput, 'out'>): Promise<{ store: SequenceStore; report: PrepareReport }> {
    const out = join(this.folder, `store-${this.stores++}`);
    const report = await buildStore(parseOptions({ threads: 2, memory: '256MB', ...input, out }), out);
    const store = SequenceStore.open(out);
    await store.verify();
    return { store, report };
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export function csv(events: readonly Event[]): string {
  return ['user,item,time', ...events.map(({ user, item, time }) => `${user},${item},${time}`), ''].join('\n');
}

/** What is in a store, with the log's own ids, user by user. */
export function contents(store: SequenceStore): Event[] {
  return Array.from({ length: store.users }, (_, u) => {
    const { items, times } = store.sequence(u);
    return Array.from(items, (item, i) => ({
      user: store.originalUser(u),
      item: store.originalItem(item),
      time: times?.[i] ?? Number.NaN,
    }));
  }).flat();
}
