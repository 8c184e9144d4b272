// Writes a long list in parts, so that it can be interrupted: `<out>.parts/` has one atomically written file per part, and
// `list.json`, which identifies the list. When all parts exist they are joined to one file, and the folder is removed.

import {
  createReadStream,
  createWriteStream,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { Engine, literal } from '../data/prepare/engine.js';
import { makeFolder, writeFileAtomic } from '../util/atomic-file.js';
import { UserError } from '../util/errors.js';
import { canonicalJson } from '../util/hash.js';

const ENDINGS = ['csv', 'jsonl', 'parquet'] as const;
export type ListFormat = (typeof ENDINGS)[number];
const MEMORY_BYTES = 512e6;

/** By the file's extension. */
export function listFormat(out: string): ListFormat {
  const format = ENDINGS.find(ending => out.endsWith(`.${ending}`));
  if (format) return format;
  throw new UserError(
    'bad-format',
    `${out} does not end in one of ${ENDINGS.join(', ')}`,
    'Use one of these extensions.',
  );
}

/** Before `list.json` exists, only its temporary file can be ours. */
function holdsOther(folder: string): boolean {
  return existsSync(folder) && readdirSync(folder).some(name => !name.startsWith('.list.json.'));
}

export interface PartFilesOptions {
  out: string;
  /** Everything that determines the content: parts of another list are not used. */
  identity: unknown;
  /** Columns with their types in DuckDB, for Parquet. */
  columns: Readonly<Record<string, string>>;
}

export class PartFiles {
  readonly #options: PartFilesOptions;
  readonly #format: ListFormat;
  readonly #folder: string;

  constructor(options: PartFilesOptions) {
    this.#options = options;
    this.#format = listFormat(options.out);
    this.#folder = `${options.out}.parts`;
    const list = join(this.#folder, 'list.json');
    const identity = canonicalJson(options.identity);
    if (existsSync(list) && readFileSync(list, 'utf8') === identity) return;
    if (!existsSync(list) && holdsOther(this.#folder)) {
      throw new UserError(
        'out-exists',
        `${this.#folder} is needed for parts, and holds other files`,
        'Choose another --out.',
      );
    }
    rmSync(this.#folder, { recursive: true, force: true });
    makeFolder(this.#folder);
    writeFileAtomic(list, identity);
  }

  has(part: number): boolean {
    return existsSync(this.#path(part));
  }

  /** Rows by column; a cell that is a list is kept as JSON. */
  write(part: number, rows: readonly Readonly<Record<string, unknown>>[]): void {
    const names = Object.keys(this.#options.columns);
    const line =
      this.#format === 'csv'
        ? (row: Readonly<Record<string, unknown>>) => names.map(name => csvCell(row[name])).join(',')
        : JSON.stringify;
    writeFileAtomic(this.#path(part), rows.map(row => `${line(row)}\n`).join(''));
  }

  /** Joins `parts` parts into one file, atomically. */
  async finish(parts: number): Promise<void> {
    const { out, columns } = this.#options;
    const temp = join(this.#folder, `whole.${this.#format}`);
    if (this.#format === 'parquet') {
      const typed = Object.entries(columns).map(([name, type]) => `${literal(name)}: ${literal(type)}`);
      const engine = await Engine.open({ scratch: this.#folder, memoryBytes: MEMORY_BYTES, threads: 1 });
      try {
        const files = Array.from({ length: parts }, (_, part) => literal(this.#path(part))).join(', ');
        await engine.run(
          `COPY (SELECT * FROM read_json([${files}], format = 'newline_delimited', columns = {${typed.join(', ')}})) TO ${literal(temp)} (FORMAT parquet, COMPRESSION zstd)`,
        );
      } finally {
        engine.close();
      }
    } else {
      const whole = createWriteStream(temp);
      if (this.#format === 'csv') whole.write(`${Object.keys(columns).join(',')}\n`);
      for (let part = 0; part < parts; part++)
        await pipeline(createReadStream(this.#path(part)), whole, { end: false });
      await new Promise<void>((done, fail) => whole.on('error', fail).end(done));
    }
    renameSync(temp, out);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #path(part: number): string {
    return join(this.#folder, `part-${String(part).padStart(6, '0')}.${this.#format === 'csv' ? 'csv' : 'jsonl'}`);
  }
}

function csvCell(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
