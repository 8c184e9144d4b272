// Merges a store and newer events into a new store: histories with the new events inserted, existing ids unchanged, new ids
// appended. The base store is not modified.

import { copyFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { UserError } from '../../util/errors.js';
import { checkedSplit, finishStore } from '../prepare/finish-store.js';
import { Workspace } from '../prepare/workspace.js';
import type { SequenceStore } from '../store/sequence-store.js';
import type { SplitRule } from '../store/split.js';
import type { ActionEntry } from '../store/store-index.js';
import { EventMerge } from './merge-events.js';
import { mergeFeatures } from './merge-features.js';
import { mergeIds, writeMergedIds } from './merge-vocabulary.js';

export interface ExtendOptions {
  readonly base: SequenceStore;
  /** The newer log, prepared with the same columns. */
  readonly newer: SequenceStore;
  readonly out: string;
  readonly rule: SplitRule;
}

export interface ExtendReport {
  readonly newEvents: number;
  /** Events of the newer log that the base already has. */
  readonly knownEvents: number;
  readonly newUsers: number;
  readonly newItems: number;
  /** Time of the first new event; undefined when the log has an order and no times. */
  readonly firstTime: number | undefined;
}

export function extendStore({ base, newer, out, rule }: ExtendOptions): ExtendReport {
  refuseOtherColumns(base, newer);
  const users = mergeIds(base.userVocabulary, newer.userVocabulary);
  const items = mergeIds(base.itemVocabulary, newer.itemVocabulary);
  const action = mergeActions(base, newer);
  const merge = new EventMerge({ base, newer, users, items, action });
  if (merge.newEvents === 0) {
    throw new UserError('nothing-new', 'the log has no events that are new to the run', 'Give a newer log.');
  }
  const workspace = new Workspace(out, { force: true });
  const { folder } = workspace;
  try {
    const written = merge.write(folder);
    const { user, item } = base.index.vocabulary;
    const userIds = writeMergedIds(folder, user, { ids: users, counts: merge.lengths });
    const itemIds = writeMergedIds(folder, item, { ids: items, counts: merge.itemCounts });
    const { lengths } = merge;
    const timeKind = base.index.time.kind;
    const split = checkedSplit({ folder, shards: written.shards, lengths, userIds, timeKind, rule });
    const features = mergeFeatures(folder, { base, newer, users, items });
    const catalogue = Math.max(base.items, items.size);
    finishStore({ folder, written, lengths, userIds, itemIds, items: catalogue, timeKind, split, features });
    for (const file of ['report.json', 'rejects.csv']) {
      if (existsSync(join(newer.folder, file))) copyFileSync(join(newer.folder, file), join(folder, file));
    }
    workspace.commit();
  } catch (error) {
    workspace.discard();
    throw error;
  }
  return {
    newEvents: merge.newEvents,
    knownEvents: newer.events - merge.newEvents,
    newUsers: users.size - users.known,
    newItems: items.size - items.known,
    firstTime: merge.firstTime,
  };
}

function refuseOtherColumns({ index: base }: SequenceStore, { index: newer }: SequenceStore): void {
  const differences: string[] = [];
  if (base.time.kind !== newer.time.kind) differences.push(`times in ${base.time.kind}, now ${newer.time.kind}`);
  const names = (columns: typeof base.columns): string =>
    columns.map(({ name, dtype }) => `${name} ${dtype}`).join(', ');
  if (names(base.columns) !== names(newer.columns)) {
    differences.push(`columns ${names(base.columns)}, now ${names(newer.columns)}`);
  }
  if (base.action?.kind !== newer.action?.kind) {
    differences.push(`actions as ${base.action?.kind ?? 'none'}, now ${newer.action?.kind ?? 'none'}`);
  }
  if (differences.length === 0) return;
  throw new UserError(
    'other-columns',
    `the newer log does not read like the one before it: ${differences.join('; ')}`,
    'Name the columns with --user, --item, --time and --action, and the unit with --time-unit.',
  );
}

/** Labels keep their numbers; bits must have the same meaning. */
function mergeActions(base: SequenceStore, newer: SequenceStore): { entry: ActionEntry | null; ofNewer: Int32Array } {
  const [known, given] = [base.index.action, newer.index.action];
  if (!known || !given) return { entry: null, ofNewer: new Int32Array(0) };
  if (known.kind === 'bits' && known.labels.join('\n') !== given.labels.join('\n')) {
    const message = `the bits of the actions were ${known.labels.join(', ')}, now ${given.labels.join(', ')}`;
    throw new UserError('other-columns', message, 'Give the same columns with --action-bits.');
  }
  const labels = [...known.labels];
  const ofNewer = Int32Array.from(given.labels, label => {
    const number = labels.indexOf(label);
    return number >= 0 ? number : labels.push(label) - 1;
  });
  return { entry: { kind: known.kind, labels }, ofNewer };
}
