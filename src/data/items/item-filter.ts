// Simple conditions on item columns, all of which must hold:
//
//   { category: 'comedy', year: { gte: 1990, lt: 2000 }, country: ['fr', 'it'], rating: { not: 'X' } }
//
// A missing value satisfies only `not`.

import { z } from 'zod';
import { UserError } from '../../util/errors.js';
import type { ItemColumns, ItemValue } from './item-columns.js';

const VALUE = z.union([z.string().max(1000), z.number(), z.boolean()]);
const RANGE = z
  .strictObject({
    gt: z.number().optional(),
    gte: z.number().optional(),
    lt: z.number().optional(),
    lte: z.number().optional(),
    not: VALUE.optional(),
  })
  .describe('bounds of a number, or an excluded value');

export const ITEM_FILTER = z
  .record(z.string().max(200), z.union([VALUE, z.array(VALUE).max(1000), RANGE]))
  .describe('conditions on item columns, all of which must hold: a value, a list of values, or bounds');
export type ItemFilter = z.infer<typeof ITEM_FILTER>;

export function checkFilter(filter: unknown): ItemFilter {
  const found = ITEM_FILTER.safeParse(filter);
  if (found.success) return found.data;
  throw new UserError('bad-filter', `${JSON.stringify(filter)} is not a filter`, 'For example: {"genre": "comedy"}');
}

/** Ascending dense ids of the items that satisfy the filter, among the first `named`. */
export function filterItems(columns: ItemColumns, filter: ItemFilter, named: number): Int32Array {
  const tests = Object.entries(filter).map(([name, condition]) => {
    const values = columns.get(name);
    if (values) return { values, meets: conditionTest(condition) };
    const known = [...columns.keys()];
    const remedy =
      known.length > 0
        ? `There are: ${known.join(', ')}.`
        : 'Give item columns with --items, or prepare with features.';
    throw new UserError('no-such-column', `items have no column "${name}"`, remedy);
  });
  const found: number[] = [];
  for (let item = 0; item < named; item++) {
    if (tests.every(({ values, meets }) => meets(values[item] ?? null))) found.push(item);
  }
  return Int32Array.from(found);
}

function conditionTest(condition: ItemFilter[string]): (value: ItemValue) => boolean {
  if (Array.isArray(condition)) {
    const wanted = new Set(condition.map(String));
    return value => value !== null && wanted.has(String(value));
  }
  if (typeof condition !== 'object') return value => value !== null && String(value) === String(condition);
  const { gt = -Infinity, gte = -Infinity, lt = Infinity, lte = Infinity, not } = condition;
  const bounded = Object.keys(condition).some(key => key !== 'not');
  return value => {
    if (not !== undefined && value !== null && String(value) === String(not)) return false;
    if (!bounded) return true;
    const number = value === null || value === '' ? Number.NaN : Number(value);
    return number > gt && number >= gte && number < lt && number <= lte;
  };
}
