// An in-memory sequence source, for examples, tests and measurements.

import type { EventColumns, SequenceSource, Split } from './sequence-source.js';

export interface MemoryEvents {
  /** Catalogue size; every item id is below it. */
  items: number;
  /** U + 1 entries: the events of user u are [offsets[u], offsets[u + 1]) of the columns. */
  offsets: Int32Array;
  item: Int32Array;
  time?: BigInt64Array;
  action?: Int32Array;
  /** Default: leave-one-out (last event test, the one before validation). */
  split?: Split;
}

/** The last event is test, the second-last validation; shorter histories go to training first. */
function leaveOneOut(lengths: Int32Array): Split {
  return {
    kind: 'leave-one-out',
    trainEnd: lengths.map(length => Math.max(length - 2, Math.min(length, 1))),
    validationEnd: lengths.map(length => Math.max(length - 1, Math.min(length, 1))),
  };
}

export class MemorySource implements SequenceSource {
  readonly users: number;
  readonly items: number;
  readonly lengths: Int32Array;
  readonly split: Split;
  readonly fingerprint = 'memory';
  readonly hasTime: boolean;
  readonly ticksPerDay?: number;
  readonly hasAction: boolean;
  readonly #events: MemoryEvents;

  constructor(events: MemoryEvents) {
    this.#events = events;
    this.users = events.offsets.length - 1;
    this.items = events.items;
    this.lengths = Int32Array.from({ length: this.users }, (_, u) => events.offsets[u + 1]! - events.offsets[u]!);
    this.split = events.split ?? leaveOneOut(this.lengths);
    this.hasTime = events.time !== undefined;
    if (this.hasTime) this.ticksPerDay = 86_400; // seconds
    this.hasAction = events.action !== undefined;
  }

  length(user: number): number {
    return this.lengths[user]!;
  }

  read(user: number, from: number, to: number, into: EventColumns, at: number): void {
    const { offsets, item, time, action } = this.#events;
    const start = offsets[user]! + from;
    const end = offsets[user]! + to;
    into.item.set(item.subarray(start, end), at);
    if (into.action && action) into.action.set(action.subarray(start, end), at);
    if (!into.time || !time) return;
    if (into.time instanceof BigInt64Array) into.time.set(time.subarray(start, end), at);
    else for (let i = start; i < end; i++) into.time[at + i - start] = Number(time[i]);
  }
}
