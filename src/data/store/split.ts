// The split into training, validation and test events: rules, fingerprint, and the leakage check.
// Each part is a range of a user's ordered events, see Split in sequence-source.ts.

import { createHash } from 'node:crypto';
import { UserError } from '../../util/errors.js';
import { sha256 } from '../../util/hash.js';
import type { Split } from '../sequence-source.js';

export type SplitRule =
  | { readonly kind: 'none' }
  /** The last event is test, the second-last validation; users with fewer than three events are training only. */
  | { readonly kind: 'leave-one-out' }
  /** Times >= testFrom are test; times in [validationFrom, testFrom) validation. */
  | { readonly kind: 'time'; readonly validationFrom: number; readonly testFrom: number }
  /** This share of the users is test, as many are validation; selected by a hash of the original user id. */
  | { readonly kind: 'user'; readonly share: number };

/** 'leave-one-out' | 'none' | 'time:<test from>' | 'time:<validation from>,<test from>' | 'user:<share>'. */
export function parseSplit(text: string, parseTime: (text: string) => number): SplitRule {
  if (text === 'leave-one-out' || text === 'none') return { kind: text };
  const [kind, value = ''] = text.split(/:(.*)/s);
  if (kind === 'time' && value !== '') {
    const cuts = value.split(',').map(parseTime);
    const testFrom = cuts.at(-1) ?? Number.NaN;
    const validationFrom = cuts[0] ?? Number.NaN;
    if (cuts.length <= 2 && validationFrom <= testFrom) return { kind: 'time', validationFrom, testFrom };
  }
  const share = Number(value);
  if (kind === 'user' && value !== '' && share > 0 && share < 0.5) return { kind: 'user', share };
  throw new UserError(
    'bad-split',
    `'${text}' is not a split`,
    "Use leave-one-out, none, time:<cut>, time:<validation cut>,<test cut> (a number in the log's unit or a date), or user:<share below 0.5>.",
  );
}

/** Parses a name made by `splitName`. */
export function namedSplit(name: string): SplitRule {
  return parseSplit(name, Number);
}

export function splitName(rule: SplitRule): string {
  if (rule.kind === 'time') return `time:${rule.validationFrom},${rule.testFrom}`;
  return rule.kind === 'user' ? `user:${rule.share}` : rule.kind;
}

/** Whether the user with this original id is drawn for `share`, in the `band`-th disjoint draw. Independent of other users. */
export function userIsDrawn(original: string, share: number, band: number): boolean {
  const draw = Number.parseInt(sha256(original).slice(0, 12), 16) / 2 ** 48;
  return draw >= band * share && draw < (band + 1) * share;
}

export interface SplitInput {
  readonly lengths: Int32Array;
  /** Number of the user's events before a time; called only for a split by time. */
  readonly eventsBefore: (user: number, time: number) => number;
  /** The log's id of a user; called only for a split by user. */
  readonly originalUser: (user: number) => string;
}

export function makeSplit(rule: SplitRule, { lengths, eventsBefore, originalUser }: SplitInput): Split {
  const trainEnd = Int32Array.from(lengths);
  const validationEnd = Int32Array.from(lengths);
  for (let u = 0; u < lengths.length; u++) {
    const n = lengths[u] ?? 0;
    if (rule.kind === 'leave-one-out' && n >= 3) {
      trainEnd[u] = n - 2;
      validationEnd[u] = n - 1;
    } else if (rule.kind === 'time') {
      trainEnd[u] = eventsBefore(u, rule.validationFrom);
      validationEnd[u] = eventsBefore(u, rule.testFrom);
    } else if (rule.kind === 'user') {
      const original = originalUser(u);
      const tests = userIsDrawn(original, rule.share, 0);
      if (tests || userIsDrawn(original, rule.share, 1)) trainEnd[u] = 0;
      if (tests) validationEnd[u] = 0;
    }
  }
  return { kind: splitName(rule), trainEnd, validationEnd };
}

export interface FingerprintInput {
  readonly split: Split;
  readonly lengths: Int32Array;
  /** Size of the ranked catalogue. */
  readonly items: number;
  /** SHA-256 of the item vocabulary, the user vocabulary, the item column and, if any, the time column. */
  readonly content: readonly string[];
}

/** Equal exactly if the same users have the same events in the same order, split at the same positions, in the same catalogue. */
export function splitFingerprint({ split, lengths, items, content }: FingerprintInput): string {
  const hash = createHash('sha256').update(`turbogr-split-1\n${split.kind}\n${items}\n${content.join('\n')}\n`);
  for (const column of [lengths, split.trainEnd, split.validationEnd]) hash.update(column);
  return hash.digest('hex');
}

/** Input of the leakage check: a user's times, or undefined if the log has only an order. */
export interface LeakageInput {
  readonly rule: SplitRule;
  readonly split: Split;
  readonly lengths: Int32Array;
  readonly times: (user: number) => Float64Array | undefined;
}

/** Throws if an event of a later part could have been seen in training. Checks the stored events, independently of the rule. */
export function checkLeakage({ rule, split, lengths, times }: LeakageInput): void {
  const leak = (user: number, what: string): never => {
    throw new UserError(
      'split-leaks',
      `the split '${split.kind}' leaks: user ${user} ${what}`,
      'Do not use this store: prepare the log again, and report the command if it happens twice.',
    );
  };
  const { trainEnd, validationEnd } = split;
  if (trainEnd.length !== lengths.length || validationEnd.length !== lengths.length) {
    leak(Math.min(trainEnd.length, validationEnd.length), 'has events and no place in the split');
  }
  for (let u = 0; u < lengths.length; u++) {
    const n = lengths[u] ?? 0;
    const train = trainEnd[u] ?? -1;
    const validation = validationEnd[u] ?? -1;
    if (train < 0 || train > validation || validation > n) leak(u, `has parts ${train}, ${validation} of ${n} events`);
    if (rule.kind === 'leave-one-out' && n >= 3 && (train !== n - 2 || validation !== n - 1)) {
      leak(u, `trains on ${train} of ${n} events`);
    }
    if (rule.kind === 'user' && train !== 0 && train !== n)
      leak(u, `trains on ${train} of ${n} events, not on all or none`);
    const time = times(u);
    if (time) checkTimes({ time, rule, train, validation }, what => leak(u, what));
  }
}

function checkTimes(
  { time, rule, train, validation }: { time: Float64Array; rule: SplitRule; train: number; validation: number },
  leak: (what: string) => never,
): void {
  for (let i = 1; i < time.length; i++) {
    const before = time[i - 1] ?? 0;
    const now = time[i] ?? 0;
    if (now < before) leak(`has event ${i} at ${now}, before event ${i - 1} at ${before}`);
  }
  if (rule.kind !== 'time') return;
  for (let i = 0; i < time.length; i++) {
    const now = time[i] ?? 0;
    const part = i < train ? 0 : i < validation ? 1 : 2;
    const due = now < rule.validationFrom ? 0 : now < rule.testFrom ? 1 : 2;
    if (part !== due)
      leak(`has event ${i} at ${now} in part ${part} (0 train, 1 validation, 2 test), which should be ${due}`);
  }
}
