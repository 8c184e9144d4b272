// A log file with something wrong with the whole of it: cut off, overwritten, mislabelled, of another kind.
import { gzipSync } from 'node:zlib';
import type { Random } from '../../../../src/util/random.js';

interface Row {
  user: string;
  item: string;
  time: string;
}

interface Spoiled {
  readonly name: string;
  readonly content: string | Uint8Array;
  readonly how: string;
}

function csvOf(rows: readonly Row[]): string {
  return `user,item,time\n${rows.map(({ user, item, time }) => `${user},${item},${time}`).join('\n')}\n`;
}

function jsonOf(rows: readonly Row[]): string {
  return `${rows.map(row => JSON.stringify({ ...row, time: Number(row.time) })).join('\n')}\n`;
}

function noise(random: Random, length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => random.below(256)));
}

function bytesOf(content: string | Uint8Array): Buffer {
  return typeof content === 'string' ? Buffer.from(content) : Buffer.from(content);
}

/** A few bytes somewhere become noise. */
function overwritten(random: Random, content: string | Uint8Array): Buffer {
  const bytes = bytesOf(content);
  for (let k = 1 + random.below(5); k > 0; k--) {
    noise(random, 1 + random.below(12)).copy(bytes, random.below(bytes.length));
  }
  return bytes;
}

function cut(random: Random, content: string | Uint8Array): Buffer {
  const bytes = bytesOf(content);
  return bytes.subarray(0, random.below(bytes.length));
}

type Spoil = (random: Random, rows: readonly Row[], parquet: Uint8Array) => Omit<Spoiled, 'how'>;

const csv = (content: string | Uint8Array) => ({ name: 'log.csv', content });
const jsonl = (content: string | Uint8Array) => ({ name: 'log.jsonl', content });
const gzip = (content: Uint8Array) => ({ name: 'log.csv.gz', content });

const SPOILS: Record<string, Spoil> = {
  'CSV overwritten': (random, rows) => csv(overwritten(random, csvOf(rows))),
  'CSV cut off': (random, rows) => csv(cut(random, csvOf(rows))),
  'CSV with stray quotes': (random, rows) => {
    const text = csvOf(rows);
    const at = random.below(text.length);
    return csv(`${text.slice(0, at)}"${text.slice(at)}`);
  },
  'CSV with NUL': (random, rows) => csv(csvOf(rows).replaceAll(String(random.below(9)), '\0')),
  'CSV with lone carriage returns': (_, rows) => csv(csvOf(rows).replaceAll('\n', '\r')),
  'CSV with mixed line ends': (random, rows) =>
    csv(csvOf(rows).replaceAll('\n', () => ['\n', '\r\n', '\n\n', '\r'][random.below(4)]!)),
  'CSV with blank lines': (random, rows) => csv(csvOf(rows).replaceAll('\n', () => '\n'.repeat(1 + random.below(3)))),
  'CSV with a name twice': (_, rows) => csv(csvOf(rows).replace('item', 'user')),
  'CSV without names': (_, rows) => csv(csvOf(rows).replace('user,item,time\n', '')),
  'CSV with empty names': (_, rows) => csv(csvOf(rows).replace('user,item,time', ',,')),
  'CSV of a header': () => csv('user,item,time\n'),
  'CSV of a header and no line end': () => csv('user,item,time'),
  'CSV of one character': random => csv(['"', ',', '\n', ' ', '\0', '\ufeff', '#', 'x'][random.below(8)]!),
  'CSV with an endless line': (_, rows) => csv(`${csvOf(rows)}${'x'.repeat(3_000_000)},1,2\n`),
  'CSV with a thousand columns': (_, rows) =>
    csv(csvOf(rows).replaceAll('\n', `${Array.from({ length: 1000 }, (_, i) => `,c${i}`).join('')}\n`)),
  'CSV in Latin-1': (_, rows) => csv(Buffer.from(csvOf(rows.map(row => ({ ...row, user: `é${row.user}` }))), 'latin1')),
  'CSV in UTF-16': (_, rows) => csv(Buffer.from(csvOf(rows), 'utf16le')),
  'CSV called JSON': (_, rows) => jsonl(csvOf(rows)),
  'CSV called Parquet': (_, rows) => ({ name: 'log.parquet', content: csvOf(rows) }),
  'CSV called gzip': (_, rows) => gzip(Buffer.from(csvOf(rows))),
  'gzip called CSV': (_, rows) => csv(gzipSync(csvOf(rows))),
  'gzip overwritten': (random, rows) => gzip(overwritten(random, gzipSync(csvOf(rows)))),
  'gzip cut off': (random, rows) => gzip(cut(random, gzipSync(csvOf(rows)))),
  'gzip of gzip': (_, rows) => gzip(gzipSync(gzipSync(csvOf(rows)))),
  'JSON lines overwritten': (random, rows) => jsonl(overwritten(random, jsonOf(rows))),
  'JSON lines cut off': (random, rows) => jsonl(cut(random, jsonOf(rows))),
  'JSON as one list': (_, rows) => jsonl(JSON.stringify(rows)),
  'JSON spread over lines': (_, rows) => jsonl(JSON.stringify(rows, null, 2)),
  'JSON of scalars': (_, rows) => jsonl(rows.map(({ time }) => time).join('\n')),
  'JSON with nested ids': (_, rows) =>
    jsonl(rows.map(row => JSON.stringify({ ...row, user: { id: row.user } })).join('\n')),
  'JSON with keys twice': (_, rows) => jsonl(jsonOf(rows).replaceAll('"item"', '"user"')),
  'JSON nested deeply': (_, rows) => jsonl(`${jsonOf(rows)}${'['.repeat(5000)}${']'.repeat(5000)}\n`),
  'JSON with huge numbers': (_, rows) => jsonl(jsonOf(rows).replaceAll('"time":', '"time":1e4')),
  'JSON called CSV': (_, rows) => csv(jsonOf(rows)),
  'Parquet overwritten': (random, _, parquet) => ({ name: 'log.parquet', content: overwritten(random, parquet) }),
  'Parquet cut off': (random, _, parquet) => ({ name: 'log.parquet', content: cut(random, parquet) }),
  'Parquet that is noise': random => ({ name: 'log.parquet', content: noise(random, 1 + random.below(600)) }),
  'Parquet with the right ends': random => ({
    name: 'log.parquet',
    content: Buffer.concat([Buffer.from('PAR1'), noise(random, 200), Buffer.from([40, 0, 0, 0]), Buffer.from('PAR1')]),
  }),
  noise: random => csv(noise(random, 1 + random.below(5000))),
  nothing: () => csv(''),
};

/** `parquet` is a sound file of that kind. */
export function spoilFile(random: Random, rows: readonly Row[], parquet: Uint8Array): Spoiled {
  const names = Object.keys(SPOILS);
  const how = names[random.below(names.length)]!;
  return { ...SPOILS[how]!(random, rows, parquet), how };
}
