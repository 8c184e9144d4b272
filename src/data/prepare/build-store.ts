// The whole of preparing, in one process: files in, a complete store folder out. It neither cleans up after a failure
// nor moves the folder into place: prepare.ts does, around a child process that runs this.

import { existsSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { UserError } from '../../util/errors.js';
import { makeFolder, writeFileAtomic } from '../../util/atomic-file.js';
import { planShards } from '../store/shard-writer.js';
import { type SplitRule, parseSplit } from '../store/split.js';
import { type Columns, resolveColumns } from './columns.js';
import { compactRange, rankItems, writeItems } from './compact-items.js';
import { LISTED_ITEMS, itemDictionary, userDictionary } from './dictionary.js';
import { Engine, count, literal, parseBytes } from './engine.js';
import { writeFeatures } from './features.js';
import { applyFilters, planFilters } from './filters.js';
import { checkedSplit, finishStore } from './finish-store.js';
import { Lanes } from './lanes.js';
import type { PrepareOptions, PrepareReport, Progress, Stage } from './options.js';
import { type Source, openSource } from './source.js';
import { EVENTS, ofEvent, stage } from './stage.js';
import { summarize } from './summary.js';
import { parseTime } from './times.js';
import { planEvents, sealEvents, sortEvents } from './write-events.js';

const PROGRESS_MS = 200;

export async function buildStore(
  options: PrepareOptions,
  folder: string,
  onProgress: (progress: Progress) => void = () => {},
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
    const { columns, rule, filters, staged } = await timed('read', async () => {
      const sources = await openSources(engine, options);
      const first = sources[0];
      if (!first) throw new UserError('no-file', 'no input file', 'Name at least one file.');
      const resolved = await resolveColumns(engine, first, options);
      // Whatever can be refused is refused here, before the long work.
      const plan = planFilters(resolved, options);
      const split = planSplit(resolved, options);
      for (const file of [options.itemsFile, ...options.features.map(table => table.file)]) {
        if (file !== undefined && !existsSync(file))
          throw new UserError('no-file', `${file} does not exist`, 'Check the path.');
      }
      const result = await stage(engine, sources, resolved, {
        rejects: join(folder, 'rejects.csv'),
        keepRejects: `${resolve(options.out)}.rejects.csv`,
        maxBad: options.maxBad,
        onFile: file => (detail = file),
      });
      return { columns: resolved, rule: split, filters: plan, staged: result };
    });
    const effects = await timed('filter', () => applyFilters(engine, filters));
    await engine.run('SET preserve_insertion_order = false');

    const listed = await listItems(engine, columns, options);
    const events = await eventTotals(engine, columns);
    const { userIds, items, plan, features } = await timed('vocabulary', async () => {
      const users = await userDictionary(engine, folder, columns.user);
      const asTable = options.features.some(({ of }) => of === 'item');
      const range = asTable ? undefined : await compactRange(engine, columns.item, listed);
      return {
        userIds: users,
        items: range ?? (await itemDictionary(engine, { folder, item: columns.item, listed })),
        plan: await planEvents(engine, columns, { range, lastRow: events.lastRow }),
        features: await writeFeatures(engine, { folder, tables: options.features, columns }),
      };
    });
    // From here on the staged database is only read, by several at once.
    engine.close();
    const { lengths } = userIds;
    const { itemIds, split, written } = await timed('sort and write', async () => {
      const lanes = new Lanes({ ...resources, places: 'listed' in items ? items.listed.length : 0 });
      try {
        const onEvents = (done: number): void => void (share = done / events.total);
        const shards = planShards(lengths);
        await sortEvents(lanes, { folder, plan, shards, lengths, onEvents });
        const ranked = 'listed' in items ? rankItems(items, lanes.tallies) : items;
        const dense = 'dense' in ranked ? ranked.dense : undefined;
        const whileSealing = async () => ({
          itemIds: 'dense' in ranked ? writeItems(folder, ranked) : ranked,
          split: checkedSplit({ folder, shards, lengths, userIds, timeKind: columns.timeKind, rule }),
        });
        const [sealed, rest] = await Promise.all([sealEvents(lanes, { folder, plan, shards, dense }), whileSealing()]);
        return { written: sealed, ...rest };
      } finally {
        await lanes.close();
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

async function openSources(engine: Engine, options: PrepareOptions): Promise<Source[]> {
  const sources: Source[] = [];
  for (const file of await expandGlobs(engine, options.files)) {
    const source = await openSource(engine, file, { format: options.format, csv: options.csv });
    const first = sources[0];
    if (first && first.format === 'csv' && source.columns.join() !== first.columns.join()) {
      throw new UserError(
        'columns-differ',
        `${file} has the columns ${source.columns.join(', ')}; ${first.file} has ${first.columns.join(', ')}`,
        'Prepare files of one layout together.',
      );
    }
    sources.push(source);
  }
  return sources;
}

function planSplit({ timeKind }: Columns, { split }: PrepareOptions): SplitRule {
  const rule = parseSplit(split, text => parseTime(text, timeKind));
  if (rule.kind !== 'time' || timeKind !== 'order') return rule;
  throw new UserError(
    'no-times',
    'a split by time needs times, and the log has only an order',
    'Use --split leave-one-out.',
  );
}

/** Names with * or ? stand for the files that fit, in the order of their names. */
async function expandGlobs(engine: Engine, files: readonly string[]): Promise<string[]> {
  const expanded: string[] = [];
  for (const file of files) {
    if (existsSync(file) || !/[*?[]/.test(file)) {
      expanded.push(file);
      continue;
    }
    const fits = await engine.rows(`SELECT file FROM glob(${literal(file)}) ORDER BY file`);
    if (fits.length === 0) throw new UserError('no-file', `no file fits '${file}'`, 'Check the path.');
    expanded.push(...fits.map(row => String(row['file'])));
  }
  return expanded;
}

async function listItems(engine: Engine, columns: Columns, options: PrepareOptions): Promise<boolean> {
  if (options.itemsFile === undefined) return false;
  const source = await openSource(engine, options.itemsFile, { format: undefined, csv: options.itemsDialect });
  const name = source.columns.includes(columns.chosen['item'] ?? '') ? columns.chosen['item'] : source.columns[0];
  if (name === undefined) throw new UserError('no-items', `${options.itemsFile} has no columns`, 'Check --items.');
  const type = columns.item.sqlType;
  await engine.run(
    `CREATE TABLE ${LISTED_ITEMS} AS SELECT DISTINCT value FROM (
       SELECT TRY_CAST(${source.value(name, 'VARCHAR')} AS ${type}) AS value FROM ${source.from(new Map())}
     ) WHERE value IS NOT NULL`,
  );
  return true;
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
  { timeKind }: Columns,
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
