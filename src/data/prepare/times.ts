// Parses times in options, to the unit of the log.

import { UserError } from '../../util/errors.js';
import type { TimeKind } from '../store/store-index.js';

const PER_MS: Record<Exclude<TimeKind, 'order'>, number> = { s: 1e-3, ms: 1, us: 1e3, ns: 1e6 };

/** A number is used as is; a date (2022-04-22, 2022-04-22T08:00Z; default UTC) is converted. */
export function parseTime(text: string, kind: TimeKind): number {
  if (/^\d+$/.test(text.trim())) return Number(text);
  const ms = /^\d{4}-\d{2}-\d{2}/.test(text)
    ? Date.parse(/[T ]/.test(text) && !/(Z|[+-]\d\d:?\d\d)$/.test(text) ? `${text}Z` : text)
    : Number.NaN;
  if (Number.isNaN(ms))
    throw new UserError(
      'bad-time',
      `'${text}' is not a time`,
      "Use a number in the log's unit or a date such as 2022-04-22.",
    );
  if (kind === 'order')
    throw new UserError('no-times', `'${text}' needs times, and the log has only an order`, 'Leave the option out.');
  return Math.floor(ms * PER_MS[kind]);
}

/** A stored time in readable form. */
export function formatTime(time: number, kind: TimeKind): string {
  if (kind === 'order') return String(time);
  const date = new Date(time / PER_MS[kind]);
  return Number.isNaN(date.getTime()) ? String(time) : date.toISOString().slice(0, 19).replace('T', ' ');
}
