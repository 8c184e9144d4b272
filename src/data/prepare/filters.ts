// Filters: each deletes rows from the staged table and reports what it removed. They run in this order: rating, actions (to
// drop, then to keep), time range, repeats, then counts (minimum events, k-core) until nothing changes, so that the counts
// hold at the end. Planning is separate from execution, so that an impossible filter is refused before the log is read.

import { UserError } from '../../util/errors.js';
import type { LogColumns } from './columns.js';
import { type Engine, count, literal } from './engine.js';
import type { PrepareOptions, PrepareReport } from './options.js';
import { EVENTS, ofEvent } from './stage.js';
import { parseTime } from './times.js';

const TIME = ofEvent('time');
const ACTION = ofEvent('action');

export interface FilterPlan {
  /** What is kept, in words, and which rows are deleted, in SQL. */
  readonly steps: readonly { readonly name: string; readonly remove: string }[];
  /** Minimum events of each. */
  readonly atLeast: { readonly user: number; readonly item: number };
  /** Minimum distinct users per item. */
  readonly itemUsers: number;
}

export function planFilters(columns: LogColumns, options: PrepareOptions): FilterPlan {
  const { minRating, withoutActions, actions, from, to, dropRepeats } = options;
  const { minUser = 1, minItem = 1, minItemUsers = 1, kCore = 1 } = options;
  const steps: { name: string; remove: string }[] = [];
  if (minRating !== undefined) {
    const x = columns.extras.findIndex(field => field.name === 'rating');
    if (x < 0) throw new UserError('no-rating', '--min-rating needs a rating column', 'Name it with --rating.');
    steps.push({
      name: `rating >= ${minRating}`,
      remove: `${ofEvent(`x${x}`)} IS NULL OR ${ofEvent(`x${x}`)} < ${minRating}`,
    });
  }
  const listed = (wanted: readonly string[]): string =>
    wanted.length === 1 ? wanted[0]! : `any of ${wanted.join(', ')}`;
  if (withoutActions) {
    steps.push({ name: `without ${listed(withoutActions)}`, remove: actionCondition(columns, withoutActions) });
  }
  if (actions) steps.push({ name: `with ${listed(actions)}`, remove: `NOT (${actionCondition(columns, actions)})` });
  const time = (text: string): number => {
    if (columns.timeKind !== 'order') return parseTime(text, columns.timeKind);
    throw new UserError('no-times', '--from and --to need times, and the log has only an order', 'Leave them out.');
  };
  if (from !== undefined) steps.push({ name: `time >= ${from}`, remove: `${TIME} < ${time(from)}` });
  if (to !== undefined) steps.push({ name: `time < ${to}`, remove: `${TIME} >= ${time(to)}` });
  if (dropRepeats) {
    const user = ofEvent(columns.user.name);
    const item = ofEvent(columns.item.name);
    const order = columns.time ? `${TIME}, rowid` : 'rowid';
    steps.push({
      name: 'consecutive repeats',
      remove: `rowid IN (SELECT row FROM (
        SELECT rowid AS row, ${item} AS item, lag(item) OVER (PARTITION BY ${user} ORDER BY ${order}) AS previous FROM ${EVENTS}
      ) WHERE item = previous)`,
    });
  }
  return {
    steps,
    atLeast: { user: Math.max(minUser, kCore), item: Math.max(minItem, kCore) },
    itemUsers: minItemUsers,
  };
}

type Effect = PrepareReport['filters'][number];

export async function applyFilters(engine: Engine, { steps, atLeast, itemUsers }: FilterPlan): Promise<Effect[]> {
  const effects: Effect[] = [];
  let left = await eventCount(engine);
  const remove = async (name: string, where: string): Promise<number> => {
    await engine.run(`DELETE FROM ${EVENTS} WHERE ${where}`);
    const now = await eventCount(engine);
    const removed = left - now;
    left = now;
    const last = effects.at(-1);
    if (last?.name === name) effects[effects.length - 1] = { name, removed: last.removed + removed, left };
    else effects.push({ name, removed, left });
    if (left === 0) {
      throw new UserError('nothing-left', `the filter '${name}' removed the last event`, 'Loosen the filters.');
    }
    return removed;
  };

  for (const step of steps) await remove(step.name, step.remove);
  const [user, item] = [ofEvent('user_key'), ofEvent('item_key')];
  const counts = [
    { least: atLeast.item, of: 'events per item', value: item, counted: '*' },
    { least: itemUsers, of: 'users per item', value: item, counted: `DISTINCT ${user}` },
    { least: atLeast.user, of: 'events per user', value: user, counted: '*' },
  ].filter(({ least }) => least > 1);
  const name = `at least ${counts.map(({ least, of }) => `${least} ${of}`).join(', ')}`;
  for (let removed = counts.length; removed > 0; ) {
    removed = 0;
    for (const { least, value, counted } of counts) {
      const few = `SELECT ${value} AS value FROM ${EVENTS} GROUP BY value HAVING count(${counted}) < ${least}`;
      removed += await remove(name, `${value} IN (${few})`);
    }
  }
  return effects;
}

async function eventCount(engine: Engine): Promise<number> {
  return count(await engine.row(`SELECT count(*) AS n FROM ${EVENTS}`), 'n');
}

function actionCondition({ action }: LogColumns, wanted: readonly string[]): string {
  if (!action) throw new UserError('no-action', '--actions needs an action column', 'Name it with --action.');
  if (action.kind === 'label') return `${ACTION} IN (${wanted.map(literal).join(', ')})`;
  const codes = wanted.map(text => {
    const code = action.kind === 'bits' ? action.bits.indexOf(text) : Number(text);
    if (Number.isInteger(code) && (action.kind === 'code' || code >= 0)) return code;
    throw new UserError(
      'unknown-action',
      `'${text}' is not an action of this log`,
      action.kind === 'bits' ? `Use ${action.bits.join(', ')}.` : 'Use the integers of the action column.',
    );
  });
  if (action.kind === 'code') return `${ACTION} IN (${codes.join(', ')})`;
  return `(${ACTION} & ${codes.reduce((mask, bit) => mask | (1 << bit), 0)}) <> 0`;
}
