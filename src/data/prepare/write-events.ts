// Writes the events: defines the stored columns, splits the sort by users into parts for the workers, and seals the shards once
// the items have their ids. The shards are the same for any number of workers.

import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { UserError } from '../../util/errors.js';
import { SafetensorsFile } from '../../util/safetensors.js';
import type { Column, ShardPlan } from '../store/shard-writer.js';
import type { ActionEntry, ShardEntry, StoreIndex } from '../store/store-index.js';
import type { LogColumns } from './columns.js';
import type { CompactRange } from './compact-items.js';
import { ITEMS, USERS } from './dictionary.js';
import { type Engine, count } from './engine.js';
import type { Done, ShardWorkers } from './shard-workers.js';
import type { EventQuery } from './sort-shards.js';
import { EVENTS, ofEvent } from './stage.js';

const ACTIONS = 'action_labels';
const MAX_LABELS = 1 << 16;

/** A row with its sort keys while DuckDB sorts it. */
const SORTED_ROW_BYTES = 64;
/** Each part scans the staged table again, as far as its users are spread over it. */
const MOST_PARTS = 12;

/** A stored column: its name in the store and its SQL. */
interface Output extends Column {
  readonly sql: string;
  readonly missing: number;
}

export interface EventPlan {
  readonly columns: readonly Output[];
  readonly action: ActionEntry | null;
  readonly query: EventQuery;
}

export interface WrittenEvents {
  readonly shards: ShardEntry[];
  readonly columns: StoreIndex['columns'];
  readonly action: ActionEntry | null;
  /** SHA-256 of the item column and, if any, of the time column, over all shards. */
  readonly content: string[];
}

export interface EventPlanOptions {
  /** If given, items are offsets in this range; otherwise dense ids from the table ITEMS. */
  readonly range: CompactRange | undefined;
  /** Greatest rowid of the events. */
  readonly lastRow: number;
}

export async function planEvents(
  engine: Engine,
  columns: LogColumns,
  { range, lastRow }: EventPlanOptions,
): Promise<EventPlan> {
  const action = await actionEntry(engine, columns);
  const outputs = await storedColumns(engine, columns, range);
  const inputOrder = lastRow < 2 ** 31 ? `${EVENTS}.rowid::INTEGER` : `${EVENTS}.rowid`;
  const joins: string[] = [];
  if (!range) joins.push(`JOIN ${ITEMS} ON ${ofEvent(columns.item.name)} = ${ITEMS}.value`);
  if (columns.action?.kind === 'label') joins.push(`JOIN ${ACTIONS} ON ${ofEvent('action')} = ${ACTIONS}.label`);
  return {
    columns: outputs,
    action,
    query: {
      events: EVENTS,
      users: USERS,
      user: ofEvent(columns.user.name),
      integerUser: columns.user.sqlType === 'BIGINT',
      joins,
      columns: outputs.map(({ sql }) => sql),
      time: columns.time && ofEvent(columns.time.name),
      inputOrder,
    },
  };
}

export interface SortEventsOptions {
  readonly folder: string;
  readonly plan: EventPlan;
  readonly shards: readonly ShardPlan[];
  readonly lengths: Int32Array;
  readonly onEvents: (done: number) => void;
}

/** Sorts and writes. With a range, items stay offsets in it and are counted in the workers' tallies. */
export async function sortEvents(workers: ShardWorkers, options: SortEventsOptions): Promise<void> {
  const { folder, plan, shards, lengths, onEvents } = options;
  const columns = plan.columns.map(({ name, dtype }) => ({ name, dtype }));
  const tasks = parts(shards, workers).map(part => {
    return { kind: 'sort' as const, query: plan.query, folder, columns, shards: part, lengths };
  });
  let done = 0;
  await workers.run(tasks, ({ events }) => onEvents((done += events)));
}

export interface SealEventsOptions {
  readonly folder: string;
  readonly plan: EventPlan;
  readonly shards: readonly ShardPlan[];
  /** Dense ids of the offsets in the range. */
  readonly dense: Int32Array | undefined;
}

export async function sealEvents(workers: ShardWorkers, options: SealEventsOptions): Promise<WrittenEvents> {
  const { folder, plan, shards: planned, dense } = options;
  const shards: ShardEntry[] = [];
  const content = new ContentHash(folder, plan.columns);
  const tasks = planned.map(shard => ({ kind: 'seal' as const, folder, shard, dense }));
  const take = ({ sealed }: Done): void => {
    if (sealed) shards[planned.findIndex(({ file }) => file === sealed.file)] = sealed;
    content.extend(shards);
  };
  await workers.run(tasks, take, { dealt: true });
  return {
    shards,
    columns: plan.columns.map(({ name, dtype, missing }) => ({ name, dtype, missing })),
    action: plan.action,
    content: content.digests(),
  };
}

/**
 * Groups consecutive shards: few parts, to scan the table seldom; each small enough to be sorted in memory; smaller towards the
 * end, so that workers finish at about the same time.
 */
function parts(shards: readonly ShardPlan[], workers: ShardWorkers): ShardPlan[][] {
  const events = shards.reduce((n, shard) => n + shard.events, 0);
  const inMemory = Math.ceil((events * SORTED_ROW_BYTES) / workers.bytesEach);
  const most = events / Math.min(MOST_PARTS, Math.max(workers.count, inMemory));
  const cut: ShardPlan[][] = [];
  let left = events;
  let taken = Number.POSITIVE_INFINITY;
  for (const shard of shards) {
    if (taken + shard.events / 2 >= Math.min(most, (left + taken) / workers.count)) {
      cut.push([]);
      taken = 0;
    }
    cut.at(-1)?.push(shard);
    taken += shard.events;
    left -= shard.events;
  }
  return cut;
}

/** Hashes of the item and time columns over all shards, extended while later shards are still being written. */
class ContentHash {
  private readonly folder: string;
  private readonly hashes;
  private next = 0;

  constructor(folder: string, columns: readonly Column[]) {
    this.folder = folder;
    this.hashes = columns
      .filter(({ name }) => name === 'item' || name === 'time')
      .map(({ name, dtype }) => ({ name, dtype, hash: createHash('sha256') }));
  }

  /** Hashes the next shards in order, as far as they are written. */
  extend(shards: readonly (ShardEntry | undefined)[]): void {
    for (let shard = shards[this.next]; shard; shard = shards[++this.next]) {
      const file = new SafetensorsFile(join(this.folder, shard.file));
      for (const { name, dtype, hash } of this.hashes) hash.update(file.read(name, dtype));
      file.close();
    }
  }

  digests(): string[] {
    return this.hashes.map(({ hash }) => hash.digest('hex'));
  }
}

async function storedColumns(engine: Engine, columns: LogColumns, range: CompactRange | undefined): Promise<Output[]> {
  const item = range ? `(${ofEvent(columns.item.name)} - ${range.first})::INTEGER` : `${ITEMS}.id`;
  const outputs: Output[] = [{ name: 'item', dtype: 'I32', sql: item, missing: 0 }];
  if (columns.timeKind !== 'order') outputs.push({ name: 'time', dtype: 'I64', sql: ofEvent('time'), missing: 0 });
  if (columns.action) {
    const sql = columns.action.kind === 'label' ? `${ACTIONS}.id` : `${ofEvent('action')}::INTEGER`;
    outputs.push({ name: 'action', dtype: 'I32', sql, missing: 0 });
  }
  for (const [x, { name, dtype }] of columns.extras.entries()) {
    const value = ofEvent(`x${x}`);
    const missing = count(await engine.row(`SELECT count(*) - count(${value}) AS n FROM ${EVENTS}`), 'n');
    const blank = dtype === 'F32' ? "'nan'::FLOAT" : '0';
    outputs.push({ name, dtype, sql: missing > 0 ? `coalesce(${value}, ${blank})` : value, missing });
  }
  return outputs;
}

async function actionEntry(engine: Engine, { action }: LogColumns): Promise<ActionEntry | null> {
  if (!action) return null;
  if (action.kind !== 'label') return { kind: action.kind, labels: [...action.bits] };
  await engine.run(
    `CREATE TABLE ${ACTIONS} AS SELECT label, (row_number() OVER (ORDER BY label) - 1)::INTEGER AS id
     FROM (SELECT DISTINCT ${ofEvent('action')} AS label FROM ${EVENTS})`,
  );
  const labels = await engine.texts(`SELECT label FROM ${ACTIONS} ORDER BY id LIMIT ${MAX_LABELS + 1}`);
  if (labels.length > MAX_LABELS) {
    throw new UserError(
      'too-many-actions',
      `the action column has more than ${MAX_LABELS} labels`,
      'Name another --action.',
    );
  }
  return { kind: 'label', labels };
}
