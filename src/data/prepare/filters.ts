// Filters, each a deletion from the staged table that reports what it removed. They run in this order: rating, actions,
// time range, repeats, then the counts (minimum events, k-core) until nothing changes, so that the counts hold at the end.

import { UserError } from '../../util/errors.js';
import type { Columns } from './columns.js';
import { type Engine, count, literal } from './engine.js';
import type { PrepareOptions, PrepareReport } from './options.js';
import { EVENTS } from './stage.js';

type Effect = PrepareReport['filters'][number];

export interface FilterInput {
  readonly columns: Columns;
  readonly options: PrepareOptions;
  /** A time of the options in the log's unit. */
  readonly parseTime: (text: string) => number;
}

export async function filter(engine: Engine, { columns, options, parseTime }: FilterInput): Promise<Effect[]> {
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

  if (options.minRating !== undefined) {
    const rating = columns.extras.findIndex(field => field.name === 'rating');
    if (rating < 0) throw new UserError('no-rating', '--min-rating needs a rating column', 'Name it with --rating.');
    await remove(`rating >= ${options.minRating}`, `x${rating} IS NULL OR x${rating} < ${options.minRating}`);
  }
  if (options.actions)
    await remove(`action in ${options.actions.join(', ')}`, `NOT (${actionCondition(columns, options.actions)})`);
  if (options.from !== undefined || options.to !== undefined) {
    if (columns.timeKind === 'order')
      throw new UserError('no-times', '--from and --to need times', 'The log has only an order.');
    if (options.from !== undefined) await remove(`time >= ${options.from}`, `time < ${parseTime(options.from)}`);
    if (options.to !== undefined) await remove(`time < ${options.to}`, `time >= ${parseTime(options.to)}`);
  }
  if (options.dropRepeats) {
    const order = columns.time ? 'time, rowid' : 'rowid';
    await remove(
      'consecutive repeats',
      `rowid IN (SELECT row FROM (
         SELECT rowid AS row, item_key, lag(item_key) OVER (PARTITION BY user_key ORDER BY ${order}) AS previous FROM ${EVENTS}
       ) WHERE item_key = previous)`,
    );
  }

  const atLeast = {
    user: Math.max(options.minUser ?? 1, options.kCore ?? 1),
    item: Math.max(options.minItem ?? 1, options.kCore ?? 1),
  };
  if (atLeast.user > 1 || atLeast.item > 1) {
    const name = `at least ${atLeast.user} events a user, ${atLeast.item} an item`;
    const below = (of: 'user' | 'item'): Promise<number> =>
      remove(
        name,
        `${of}_key IN (SELECT ${of}_key FROM ${EVENTS} GROUP BY ${of}_key HAVING count(*) < ${atLeast[of]})`,
      );
    for (let removed = 1; removed > 0; ) removed = (await below('item')) + (await below('user'));
  }
  return effects;
}

export async function eventCount(engine: Engine): Promise<number> {
  return count(await engine.row(`SELECT count(*) AS n FROM ${EVENTS}`), 'n');
}

function actionCondition({ action }: Columns, wanted: readonly string[]): string {
  if (!action) throw new UserError('no-action', '--actions needs an action column', 'Name it with --action.');
  if (action.kind === 'label') return `action IN (${wanted.map(literal).join(', ')})`;
  const codes = wanted.map(text => {
    const code = action.kind === 'bits' ? action.bits.indexOf(text) : Number(text);
    if (Number.isInteger(code) && (action.kind === 'code' || code >= 0)) return code;
    throw new UserError(
      'unknown-action',
      `'${text}' is no action of this log`,
      action.kind === 'bits' ? `Use ${action.bits.join(', ')}.` : 'Use the integers of the action column.',
    );
  });
  if (action.kind === 'code') return `action IN (${codes.join(', ')})`;
  return `(action & ${codes.reduce((mask, bit) => mask | (1 << bit), 0)}) <> 0`;
}
