// Builds a complete store folder from log files, in one process. Clean-up after failures and moving the folder into place are
// done by prepare.ts, which runs this in a child process.

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { UserError } from '../../util/errors.js';
import { makeFolder, writeFileAtomic } from '../../util/atomic-file.js';
import { planShards } from '../store/shard-writer.js';
import type { LogColumns } from './columns.js';
import { compactRange, rankItems, writeItems } from './compact-items.js';
import { itemDictionary, userDictionary } from './dictionary.js';
import { Engine, count, parseBytes } from './engine.js';
import { writeFeatures } from './features.js';
import { applyFilters } from './filters.js';
import { checkedSplit, finishStore } from './finish-store.js';
import { ShardWorkers } from './shard-workers.js';
import { listItems } from './listed-items.js';
import type { PrepareOptions, PrepareReport, Progress, Stage } from './options.js';
import { isReaderBug, readLog } from './read-log.js';
import { EVENTS, ofEvent } from './stage.js';
import { summarize } from './summary.js';
import { planEvents, sealEvents, sortEvents } from './write-events.js';

const PROGRESS_MS = 200;

type OnProgress = (progress: Progress) => void;

export async function buildStore(
  options: PrepareOptions,
  folder: string,
  onProgress: OnProgress = () => {},
): Promise<PrepareReport> {
  try {
    return await build(options, folder, { onProgress, wholeRows: false });
  } catch (error) {
    if (!isReaderBug(error)) throw error;
    return await build(options, folder, { onProgress, wholeRows: true });
  }
}

async function build(
  options: PrepareOptions,
  folder: string,
  { onProgress, wholeRows }: { onProgress: OnProgress; wholeRows: boolean },
): Promise<PrepareReport> {
  const scratch = join(folder, 'scratch');
  makeFolder(scratch);
  const resources = { scratch, memoryBytes: parseBytes(options.memory), threads: options.threads };
  const engine = await Engine.open(resources);
  const seconds: Record<string, number> = {};
  let detail = '';
  let share: number | undefined;
  const timed = async <T>(name: Stage, work: () => Promise<T> | T): Promise<T> => {
    const begin = performance.now();
    detail = '';
    share = undefined;
    onProgress({ stage: name, detail });
    const timer = setInterval(
      () => onProgress({ stage: name, share: share ?? engine.progress(), detail }),
      PROGRESS_MS,
    );
    try {
      return await work();
    } finally {
      clearInterval(timer);
      seconds[name] = (performance.now() - begin) / 1000;
    }
  };

  try {
    const { columns, rule, filters, staged } = await timed('read', () =>
      readLog(engine, options, { folder, wholeRows, onFile: file => (detail = file) }),
    );
    const effects = await timed('filter', () => applyFilters(engine, filters));
    await engine.run('SET preserve_insertion_order = false');

    const { listed, tables } = await listItems(engine, columns, options);
    const events = await eventTotals(engine, columns);
    const { userIds, items, plan, features } = await timed('vocabulary', async () => {
      const users = await userDictionary(engine, folder, columns.user);
      const asTable = tables.some(({ of }) => of === 'item');
      const range = asTable ? undefined : await compactRange(engine, columns.item, listed);
      return {
        userIds: users,
        items: range ?? (await itemDictionary(engine, { folder, item: columns.item, listed })),
        plan: await planEvents(engine, columns, { range, lastRow: events.lastRow }),
        features: await writeFeatures(engine, { folder, tables, columns }),
      };
    });
    // From here on the staged database is read-only, shared by several readers.
    engine.close();
    const { lengths } = userIds;
    const { itemIds, split, written } = await timed('sort and write', async () => {
      const places = 'listed' in items ? items.listed.length : 0;
      const workers = new ShardWorkers({ ...resources, places, events: events.total });
      try {
        const onEvents = (done: number): void => void (share = done / events.total);
        const shards = planShards(lengths);
        await sortEvents(workers, { folder, plan, shards, lengths, onEvents });
        const ranked = 'listed' in items ? rankItems(items, workers.tallies) : items;
        const dense = 'dense' in ranked ? ranked.dense : undefined;
        const whileSealing = async () => ({
          itemIds: 'dense' in ranked ? writeItems(folder, ranked) : ranked,
          split: checkedSplit({ folder, shards, lengths, userIds, timeKind: columns.timeKind, rule }),
        });
        const [sealed, rest] = await Promise.all([
          sealEvents(workers, { folder, plan, shards, dense }),
          whileSealing(),
        ]);
        return { written: sealed, ...rest };
      } finally {
        await workers.close();
      }
    });
    const catalogue = catalogueSize(itemIds.entry.size, options.catalogue);
    await timed('finish', () =>
      finishStore({
        folder,
        written,
        lengths,
        userIds,
        itemIds,
        items: catalogue,
        timeKind: columns.timeKind,
        split,
        features,
      }),
    );
    const report: PrepareReport = {
      out: options.out,
      ...staged,
      columns: columns.chosen,
      guessed: columns.guessed,
      notes: columns.notes,
      filters: effects,
      ...summarize(folder, { first: events.first, last: events.last }),
      seenItems: itemIds.seen,
      seconds,
    };
    writeFileAtomic(join(folder, 'report.json'), `${JSON.stringify(report, null, 2)}\n`);
    return report;
  } finally {
    engine.close();
    rmSync(scratch, { recursive: true, force: true });
  }
}

function catalogueSize(vocabulary: number, reserved: number | undefined): number {
  if (reserved !== undefined && reserved < vocabulary) {
    throw new UserError(
      'catalogue-too-small',
      `--catalogue ${reserved} is below the ${vocabulary} items of the log`,
      'Leave it out or raise it.',
    );
  }
  return reserved ?? vocabulary;
}

async function eventTotals(
  engine: Engine,
  { timeKind }: LogColumns,
): Promise<{ total: number; lastRow: number; first: number | null; last: number | null }> {
  const span = timeKind === 'order' ? '' : `, min(${ofEvent('time')}) AS first, max(${ofEvent('time')}) AS last`;
  const row = await engine.row(`SELECT count(*) AS n, max(rowid) AS last_row${span} FROM ${EVENTS}`);
  return {
    total: count(row, 'n'),
    lastRow: count(row, 'last_row'),
    first: timeKind === 'order' ? null : count(row, 'first'),
    last: timeKind === 'order' ? null : count(row, 'last'),
  };
}
