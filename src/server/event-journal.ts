// Journal of events that arrive while a model is served: appended to a file and flushed before they are acknowledged, replayed at
// the next start. Appends that arrive during a flush share the next one. A key makes an append idempotent: repeated with the
// same content it changes nothing, with other content it is refused.
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
  /** Hash of the content sent with a key: events without a time get their arrival time, which differs at each attempt. */
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
  /** By key: the content, and a promise that resolves when it is on disk. */
  readonly #keys = new Map<string, { content: string | undefined; written: Promise<void> }>();
  #pending: Pending[] = [];
  #flushing: Promise<void> | undefined;

  /** Replays acknowledged events; a line truncated by a crash was not acknowledged and is removed. */
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

  /** Resolves once the events are on disk; `duplicate` if they already were. */
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
        // Unacknowledged events must not reappear at the next start.
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

/** Complete lines, and the end of the last one. */
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
    const message = `${path}, line ${number}, is not an event of this journal`;
    throw new UserError('damaged-events', message, 'Restore the file, or choose another folder with --events.', {
      cause,
    });
  }
}
