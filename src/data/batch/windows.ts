// Windows: the parts of the users' histories that become sequences of the model, for training and evaluation.
//
// A window is a range [from, to) of one user's events, read as next-item pairs: event i is the input, event i + 1 its
// target, so a window of n + 1 events is a sequence of n tokens and n is at most the model's length.
//
//   latest   one window per user: the newest n + 1 training events; older events are not used
//   sliding  every training pair in exactly one window, cut backwards from the newest; the oldest window is the short
//            one, and a window's first input is the last target of the window before it
//
// Evaluation windows end at a held-out event: the target of their last token, which is to be predicted.

import { Random } from '../../util/random.js';
import type { SequenceSource } from '../sequence-source.js';

export type WindowPolicy = 'latest' | 'sliding';

/** Columns of equal length, one entry per window. */
export interface Windows {
  readonly count: number;
  readonly user: Int32Array;
  readonly from: Int32Array;
  readonly to: Int32Array;
}

export function windowTokens(windows: Windows, w: number): number {
  return windows.to[w]! - windows.from[w]! - 1;
}

class WindowList {
  readonly #flat: number[] = [];

  push(user: number, from: number, to: number): void {
    this.#flat.push(user, from, to);
  }

  finish(): Windows {
    const column = (c: number) => Int32Array.from({ length: this.#flat.length / 3 }, (_, w) => this.#flat[3 * w + c]!);
    return { count: this.#flat.length / 3, user: column(0), from: column(1), to: column(2) };
  }
}

function requireLength(maxLength: number): void {
  if (!Number.isInteger(maxLength) || maxLength < 1) {
    throw new RangeError(`maxLength must be a whole number of tokens, at least 1, got ${maxLength}`);
  }
}

/** Windows over the training events; users with fewer than two have no pair and no window. */
export function trainingWindows(
  source: Pick<SequenceSource, 'users' | 'split'>,
  maxLength: number,
  policy: WindowPolicy,
): Windows {
  requireLength(maxLength);
  const list = new WindowList();
  for (let user = 0; user < source.users; user++) {
    const end = source.split.trainEnd[user]!;
    const oldest = policy === 'latest' ? Math.max(0, end - 1 - maxLength) : 0;
    for (let to = end; to - 1 > oldest; to -= maxLength) {
      list.push(user, Math.max(oldest, to - 1 - maxLength), to);
    }
  }
  return list.finish();
}

export interface EvaluationOptions {
  part: 'validation' | 'test';
  maxLength: number;
  /** How many of a user's held-out events to predict, oldest first (default 1; leave-one-out holds out one). */
  targetsPerUser?: number;
}

/** Start and end of each user's held-out events of a part. */
export function partBounds({ split, lengths }: SequenceSource, part: 'validation' | 'test'): [Int32Array, Int32Array] {
  return part === 'validation' ? [split.trainEnd, split.validationEnd] : [split.validationEnd, lengths];
}

/** One window per held-out event with a history; the input is the newest `maxLength` events before it. */
export function evaluationWindows(source: SequenceSource, options: EvaluationOptions): Windows {
  requireLength(options.maxLength);
  const [starts, ends] = partBounds(source, options.part);
  const list = new WindowList();
  for (let user = 0; user < source.users; user++) {
    const first = Math.max(1, starts[user]!); // the very first event has no history
    const stop = Math.min(ends[user]!, first + (options.targetsPerUser ?? 1));
    for (let target = first; target < stop; target++) {
      list.push(user, Math.max(0, target - options.maxLength), target + 1);
    }
  }
  return list.finish();
}

/** One window per user that ends with the part's last event; as many of the part's events are targets as fit. */
export function heldOutWindows(source: SequenceSource, { part, maxLength }: EvaluationOptions): Windows {
  requireLength(maxLength);
  const [starts, ends] = partBounds(source, part);
  const list = new WindowList();
  for (let user = 0; user < source.users; user++) {
    const end = ends[user]!;
    if (end > Math.max(1, starts[user]!)) list.push(user, Math.max(0, end - 1 - maxLength), end);
  }
  return list.finish();
}

/** The windows of `users` users, drawn by `purpose` only, in order; smaller samples are subsets of larger ones. */
export function sampleUsers(windows: Windows, users: number | undefined, purpose: string): Windows {
  const present = [...new Set(windows.user)];
  if (users === undefined || users >= present.length) return windows;
  const order = Int32Array.from(present);
  new Random(0, purpose).shuffle(order);
  return windowsOf(windows, new Set(order.subarray(0, users)));
}

/** The windows of some users, in order. */
export function windowsOf(windows: Windows, users: ReadonlySet<number>): Windows {
  const kept = Array.from(windows.user.keys()).filter(w => users.has(windows.user[w]!));
  const column = (values: Int32Array) => Int32Array.from(kept, w => values[w]!);
  return { count: kept.length, user: column(windows.user), from: column(windows.from), to: column(windows.to) };
}

/** Part `index` of `count`: consecutive windows with about equal tokens per part; may be empty. */
export function windowsPart(windows: Windows, { index, count }: { index: number; count: number }): Windows {
  if (count === 1) return windows;
  let total = 0;
  for (let w = 0; w < windows.count; w++) total += windowTokens(windows, w);
  let [from, to, before] = [0, 0, 0];
  for (let w = 0; w < windows.count; w++) {
    const part = Math.floor((before * count) / total);
    if (part < index) from = w + 1;
    if (part <= index) to = w + 1;
    before += windowTokens(windows, w);
  }
  const column = (values: Int32Array) => values.slice(from, to);
  return { count: to - from, user: column(windows.user), from: column(windows.from), to: column(windows.to) };
}
