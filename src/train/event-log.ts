// `events.jsonl`: one line per event, appended; truncated to a step when a run resumes from there. Only the last line can be
// torn by a crash; it is dropped.

import { closeSync, lstatSync, openSync } from 'node:fs';
import { writeFileAtomic, writeFully } from '../util/atomic-file.js';
import { UserError } from '../util/errors.js';
import { readTextFile } from '../util/regular-file.js';
import type { LoggedEvent, RunEvent } from '../events/event.js';

export class EventLog {
  readonly path: string;
  readonly #fd: number;

  /** Opens for appending. With `keepTo`, later events are removed first: they will happen again. */
  constructor(path: string, keepTo?: number) {
    this.path = path;
    if (lstatSync(path, { throwIfNoEntry: false })) {
      const kept = readEvents(path).filter(event => keepTo === undefined || event.step <= keepTo);
      writeFileAtomic(path, kept.map(event => `${JSON.stringify(event)}\n`).join(''));
    }
    this.#fd = openSync(path, 'a');
  }

  append(event: RunEvent): void {
    const line: LoggedEvent = { time: new Date().toISOString(), ...event };
    writeFully(this.#fd, Buffer.from(`${JSON.stringify(line)}\n`));
  }

  close(): void {
    closeSync(this.#fd);
  }
}

/** All complete events of a file, oldest first. */
export function readEvents(path: string): LoggedEvent[] {
  const text = readTextFile(path);
  if (text === undefined) {
    const remedy = 'Remove it: it holds only figures, no weights.';
    throw new UserError('damaged-events', `${path} is not a readable file`, remedy);
  }
  const lines = text.split('\n').slice(0, -1); // after the last newline: a torn line, or nothing
  return lines.map((line, i) => {
    const event = parseLine(line);
    if (isEvent(event)) return event;
    throw new UserError(
      'damaged-events',
      `line ${i + 1} of ${path} is not an event: ${JSON.stringify(line.slice(0, 80))}`,
      'Remove that line. Weights and checkpoints do not depend on this file.',
    );
  });
}

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

/** Recognises lines that `append` did not write. */
function isEvent(value: unknown): value is LoggedEvent {
  if (typeof value !== 'object' || value === null) return false;
  const typed = (key: string, type: string) => typeof Reflect.get(value, key) === type;
  return typed('kind', 'string') && typed('step', 'number') && typed('time', 'string');
}
