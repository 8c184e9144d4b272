// A random well-formed log: its intended events, and files that encode them in one of the common formats. Nothing is shared with
// the code under test, so a store is compared with the intended events, not with another reader's result.
import { gzipSync } from 'node:zlib';
import type { Random } from '../../../../src/util/random.js';
import { ID_KINDS, idsOf } from './random-ids.js';

export interface MeantEvent {
  readonly user: string;
  readonly item: string;
  /** Nanoseconds since 1970, or a bare number where the log has only an order. */
  readonly time: bigint;
}

export interface LogFile {
  readonly name: string;
  readonly content: string | Uint8Array;
}

export interface RandomLog {
  readonly events: readonly MeantEvent[];
  /** What the file is, for messages. */
  readonly about: string;
  readonly format: 'csv' | 'json' | 'parquet';
  readonly files: readonly LogFile[];
  /** How times are written. */
  readonly time: TimeKind;
}

interface TimeKind {
  readonly name: string;
  /** Nanoseconds of the smallest step that is written. */
  readonly step: bigint;
  readonly write: (ns: bigint) => string;
  /** A number in JSON; text otherwise. */
  readonly number: boolean;
}

const SECOND = 1_000_000_000n;

function iso(ns: bigint, digits: number): string {
  const seconds = new Date(Number(ns / SECOND) * 1000).toISOString().slice(0, 19);
  if (digits === 0) return seconds;
  return `${seconds}.${String(ns % SECOND)
    .padStart(9, '0')
    .slice(0, digits)}`;
}

function fraction(ns: bigint, digits: number): string {
  return `${ns / SECOND}.${String(ns % SECOND)
    .padStart(9, '0')
    .slice(0, digits)}`;
}

export const TIME_KINDS: readonly TimeKind[] = [
  { name: 's', step: SECOND, write: ns => String(ns / SECOND), number: true },
  { name: 'ms', step: 1_000_000n, write: ns => String(ns / 1_000_000n), number: true },
  { name: 'us', step: 1_000n, write: ns => String(ns / 1_000n), number: true },
  { name: 'ns', step: 1n, write: String, number: true },
  { name: 'fractions to ms', step: 1_000_000n, write: ns => fraction(ns, 3), number: true },
  { name: 'fractions to us', step: 1_000n, write: ns => fraction(ns, 6), number: true },
  { name: 'fractions to ns', step: 1n, write: ns => fraction(ns, 9), number: true },
  { name: 'dates', step: 86_400n * SECOND, write: ns => iso(ns, 0).slice(0, 10), number: false },
  { name: 'dates with a clock', step: SECOND, write: ns => iso(ns, 0).replace('T', ' '), number: false },
  { name: 'dates to ms', step: 1_000_000n, write: ns => `${iso(ns, 3)}Z`, number: false },
  { name: 'dates to us', step: 1_000n, write: ns => iso(ns, 6), number: false },
  { name: 'dates to ns', step: 1n, write: ns => `${iso(ns, 9)}Z`, number: false },
  {
    name: 'dates with an offset',
    step: SECOND,
    write: ns => `${iso(ns + 7200n * SECOND, 0)}+02:00`,
    number: false,
  },
  { name: 'an order', step: SECOND, write: ns => String(ns / SECOND - 1_650_000_000n), number: true },
];

const HEADERS = [
  ['user', 'item', 'time'],
  ['user_id', 'item_id', 'timestamp'],
  ['User ID', 'StockCode', 'InvoiceDate'],
  ['visitorid', 'itemid', 'ts'],
  ['customer_id', 'sku', 'date'],
] as const;

function pick<T>(random: Random, list: readonly T[]): T {
  return list[random.below(list.length)]!;
}

function shuffled<T>(random: Random, list: readonly T[]): T[] {
  return list
    .map(value => ({ value, place: random.below(2 ** 31) }))
    .sort((a, b) => a.place - b.place)
    .map(({ value }) => value);
}

export function randomLog(random: Random): RandomLog {
  const [user, item] = [pick(random, ID_KINDS), pick(random, ID_KINDS)];
  const time = pick(random, TIME_KINDS);
  const [users, items] = [idsOf(user, 1 + random.below(7), random), idsOf(item, 1 + random.below(12), random)];
  // Few different times, so that there are ties.
  const moments = Array.from({ length: 1 + random.below(30) }, () => {
    const ns = 1_650_000_000n * SECOND + BigInt(random.below(2 ** 30)) * 1_000_003n;
    return (ns / time.step) * time.step;
  });
  const events = Array.from({ length: 1 + random.below(80) }, () => ({
    user: pick(random, users),
    item: pick(random, items),
    time: pick(random, moments),
  }));
  const format = pick(random, ['csv', 'csv', 'json', 'parquet'] as const);
  const about = `${format}, users ${user}, items ${item}, times ${time.name}`;
  const log = { events, time };
  if (format === 'csv') return { ...log, format, ...csvFiles(random, log, about) };
  if (format === 'json') return { ...log, format, about, files: [jsonFile(random, log)] };
  return { ...log, format, about, files: [] };
}

type Log = Pick<RandomLog, 'events' | 'time'>;

function csvFiles(random: Random, { events, time }: Log, about: string) {
  const delimiter = pick(random, [',', ',', ';', '\t', '|']);
  const end = pick(random, ['\n', '\r\n']);
  const always = random.below(3) === 0;
  const quoted = (cell: string): string =>
    always || /["\r\n,;\t|]|^\s|\s$/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
  const names = [...pick(random, HEADERS), ...(random.below(2) === 0 ? ['note'] : [])];
  const order = shuffled(
    random,
    names.map((_, c) => c),
  );
  const line = (cells: readonly string[]): string => order.map(c => quoted(cells[c] ?? '')).join(delimiter);
  const rows = events.map(event => line([event.user, event.item, time.write(event.time), `n${random.below(9)}`]));
  // Several files are read in the order given.
  const cut = random.below(4) === 0 ? random.below(rows.length) : 0;
  const parts = cut > 0 ? [rows.slice(0, cut), rows.slice(cut)] : [rows];
  const [mark, last, zipped] = [random.below(4) === 0, random.below(4) > 0, random.below(5) === 0];
  const files = parts.map((part, f) => {
    const text = `${mark ? '\ufeff' : ''}${[line(names), ...part].join(end)}${last ? end : ''}`;
    return zipped ? { name: `log-${f}.csv.gz`, content: gzipSync(text) } : { name: `log-${f}.csv`, content: text };
  });
  const how = [JSON.stringify(delimiter), JSON.stringify(end), always && 'all quoted', mark && 'BOM', zipped && 'gzip'];
  return { files, about: `${about}, ${how.filter(Boolean).join(' ')}, ${names.join('/')}` };
}

const PLAIN_INTEGER = /^(0|-?[1-9]\d*)$/;

function jsonFile(random: Random, { events, time }: Log): LogFile {
  const [user, item, at] = pick(random, HEADERS);
  const asNumbers = random.below(2) === 0;
  const value = (text: string, mayBeNumber: boolean): string =>
    asNumbers && mayBeNumber ? text : escapeSome(random, JSON.stringify(text));
  const lines = events.map(event => {
    const pairs = [
      `${JSON.stringify(user)}: ${value(event.user, PLAIN_INTEGER.test(event.user))}`,
      `${JSON.stringify(item)}: ${value(event.item, PLAIN_INTEGER.test(event.item))}`,
      `${JSON.stringify(at)}:${value(time.write(event.time), time.number)}`,
      ...(random.below(3) === 0 ? ['"note": {"a": [1, null]}'] : []),
    ];
    return `{${shuffled(random, pairs).join(', ')}}`;
  });
  return { name: 'log.jsonl', content: `${lines.join('\n')}${random.below(2) === 0 ? '\n' : ''}` };
}

/** JSON may write any character as an escape. */
function escapeSome(random: Random, json: string): string {
  if (random.below(4) > 0) return json;
  return json.replaceAll(/[\u0080-\uffff]/g, unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
