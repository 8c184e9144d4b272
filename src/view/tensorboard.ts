// A run's figures as a TensorBoard event file, in `tensorboard/` of the run. Rewritten from the run's log when it starts or
// resumes, so there is one file, without steps that were rolled back.

import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import type { RunEvent } from '../events/event.js';
import { fileVersionRecord, scalarRecord } from '../events/tfevents.js';
import { makeFolder, writeFully } from '../util/atomic-file.js';
import { EventTail } from './event-tail.js';
import { scalarsOf } from './scalars.js';

const FILE = 'events.out.tfevents.0000000000.turbogr';

export class TensorBoardWriter {
  readonly path: string;
  readonly #log: EventTail;
  #fd = -1;

  constructor(run: string) {
    const folder = join(run, 'tensorboard');
    makeFolder(folder);
    this.path = join(folder, FILE);
    this.#log = new EventTail(join(run, 'events.jsonl'));
  }

  /** Call after every event of the run: writes what was logged since the last call. */
  update(): void {
    const { replaced, events } = this.#log.read();
    if (replaced) this.close();
    if (this.#fd < 0) {
      this.#fd = openSync(this.path, 'w');
      writeFully(this.#fd, fileVersionRecord(Date.parse(events[0]?.time ?? '') || Date.now()));
    }
    const records = events.map(event => recordOf(event, Date.parse(event.time)));
    if (records.length > 0) writeFully(this.#fd, Buffer.concat(records));
  }

  close(): void {
    if (this.#fd >= 0) closeSync(this.#fd);
    this.#fd = -1;
  }
}

function recordOf(event: RunEvent, time: number): Buffer {
  const scalars = scalarsOf(event);
  return Object.keys(scalars).length === 0 ? Buffer.alloc(0) : scalarRecord(time, event.step, scalars);
}
