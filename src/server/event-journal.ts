// Events that arrive while a model is served: appended to a file and flushed before they are acknowledged, replayed at the
// next start. Appends that wait while a flush is under way share the next one. A key makes an append idempotent: sent again
// with the same content it changes nothing, with other content it is refused.
//
//   <folder>/events.jsonl   one line per append: {"user", "events", "received", "key", "content"}

import { createReadStream, existsSync, truncateSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { makeFolder, syncFolder } from '../util/atomic-file.js';
import { UserError } from '../util/errors.js';
import { type FolderLock, lockFolder } from '../util/folder-lock.js';

const EVENT = z.strictObject({ item: z.string(), time: z.number().optional(), action: z.int().optional() });
const ENTRY = z.strictObject({
  user: z.string(),
  events: z.array(EVENT),
  key: z.string().optional(),
  /** Hash of what was sent, beside a key: events without a time get that of their arrival, which differs at each try. */
  content: z.string().optional(),
  /** Milliseconds since 1970. */
  received: z.number(),
});
export type JournalEvent = z.infer<typeof EVENT>;
export type JournalEntry = z.infer<typeof ENTRY>;

const FILE = 'events.jsonl';
const NEWLINE = 10;

/** A key was used before with other content. */
export class KeyConflict extends Error {}

interface Pending {
  line: Buffer;
  entry: JournalEntry;
  done: () => void;
  fail: (error: unknown) => void;
}

export class EventJournal {
  readonly #lock: FolderLock;
  readonly #file: FileHandle;
  #length: number;
  readonly #byUser = new Map<string, JournalEvent[]>();
  /** By key: what was sent with it, and when that is on the disk. */
  readonly #keys = new Map<string, { content: string | undefined; written: Promise<void> }>();
  #pending: Pending[] = [];
  #flushing: Promise<void> | undefined;

  /** Replays what was acknowledged; a line that was cut off by a crash was not, and is removed. */
  static async open(folder: string): Promise<EventJournal> {
    makeFolder(folder);
    const lock = await lockFolder(folder);
    try {
      const path = join(folder, FILE);
      const { entries, length } = await readEntries(path);
      if (existsSync(path)) truncateSync(path, length);
      const file = await open(path, 'a');
      syncFolder(folder);
      return new EventJournal({ lock, file, length, entries });
    } catch (error) {
      lock[Symbol.dispose]();
      throw error;
    }
  }

  private constructor(opened: { lock: FolderLock; file: FileHandle; length: number; entries: JournalEntry[] }) {
    this.#lock = opened.lock;
    this.#file = opened.file;
    this.#length = opened.length;
    for (const entry of opened.entries) {
      this.#remember(entry);
      if (entry.key !== undefined) {
        this.#keys.set(entry.key, { content: entry.content, written: Promise.resolve() });
      }
    }
  }

  /** Returns once the events are on the disk; `duplicate` when they were there already. */
  async append(entry: JournalEntry): Promise<{ duplicate: boolean }> {
    const { key, content } = entry;
    if (key === undefined) {
      await this.#write(entry);
      return { duplicate: false };
    }
    const known = this.#keys.get(key);
    if (known) {
      if (known.content !== content) throw new KeyConflict(`the key "${key}" was used before with other events`);
      await known.written;
      return { duplicate: true };
    }
    const written = this.#write(entry);
    this.#keys.set(key, { content, written });
    try {
      await written;
    } catch (error) {
      this.#keys.delete(key);
      throw error;
    }
    return { duplicate: false };
  }

  /** Events of a user since the model's log ended, in the order of their arrival. */
  eventsOf(user: string): readonly JournalEvent[] {
    return this.#byUser.get(user) ?? [];
  }

  get users(): number {
    return this.#byUser.size;
  }

  async close(): Promise<void> {
    while (this.#flushing) await this.#flushing;
    await this.#file.close();
    this.#lock[Symbol.dispose]();
  }

  #write(entry: JournalEntry): Promise<void> {
    return new Promise((done, fail) => {
      this.#pending.push({ line: Buffer.from(`${JSON.stringify(entry)}\n`), entry, done, fail });
      this.#flushing ??= this.#flush();
    });
  }

  async #flush(): Promise<void> {
    while (this.#pending.length > 0) {
      const batch = this.#pending;
      this.#pending = [];
      try {
        this.#lock.assertHeld();
        const bytes = Buffer.concat(batch.map(({ line }) => line));
        await this.#file.appendFile(bytes);
        await this.#file.datasync();
        this.#length += bytes.length;
        for (const { entry, done } of batch) {
          this.#remember(entry);
          done();
        }
      } catch (error) {
        // What was not acknowledged must not come back at the next start.
        await this.#file.truncate(this.#length).catch(() => undefined);
        for (const { fail } of batch) fail(error);
      }
    }
    this.#flushing = undefined;
  }

  #remember({ user, events }: JournalEntry): void {
    const known = this.#byUser.get(user);
    if (known) known.push(...events);
    else this.#byUser.set(user, [...events]);
  }
}

/** Whole lines, and where the last of them ends. */
async function readEntries(path: string): Promise<{ entries: JournalEntry[]; length: number }> {
  const entries: JournalEntry[] = [];
  let length = 0;
  if (!existsSync(path)) return { entries, length };
  let rest = Buffer.alloc(0);
  for await (const chunk of createReadStream(path)) {
    rest = Buffer.concat([rest, chunk]);
    for (let end = rest.indexOf(NEWLINE); end >= 0; end = rest.indexOf(NEWLINE)) {
      entries.push(parseEntry(path, rest.subarray(0, end), entries.length + 1));
      length += end + 1;
      rest = rest.subarray(end + 1);
    }
  }
  return { entries, length };
}

function parseEntry(path: string, line: Buffer, number: number): JournalEntry {
  try {
    return ENTRY.parse(JSON.parse(line.toString('utf8')));
  } catch (cause) {
    const message = `${path}, line ${number}, is no event that was written here`;
    throw new UserError(
      'damaged-events',
      message,
      'Put the file back as it was, or name another folder with --events.',
      {
        cause,
      },
    );
  }
}
