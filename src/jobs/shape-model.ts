// The model shape for a config and a data set: architecture, catalogue, and optional inputs.

import { join } from 'node:path';
import type { ResolvedConfig } from '../config/schema.js';
import { SequenceStore } from '../data/store/sequence-store.js';
import type { SequenceSource } from '../data/sequence-source.js';
import { buildDefinition } from '../nn/build.js';
import type { ModelShape, SideFeature } from '../nn/model-shape.js';
import { UserError } from '../util/errors.js';
import { SafetensorsFile } from '../util/safetensors.js';
import type { ModelBuilder } from './train-options.js';

/** More distinct actions than this indicate a wrong column. */
const MOST_ACTIONS = 65_536;
const MOST_CATEGORIES = 1 << 20;

export function shapeModel(config: ResolvedConfig, source: SequenceSource, build?: ModelBuilder): ModelShape {
  const { model } = config;
  const definition = build?.(config, source.hasTime) ?? buildDefinition(model, source.ticksPerDay);
  return {
    definition,
    items: source.items,
    positions: model.maxLength + model.outputSlots,
    dropout: model.dropout,
    actions: model.actions ? countActions(source) : 0,
    sideFeatures: model.sideFeatures.map(name => readSideFeature(source, name)),
    scoring: config.loss,
  };
}

/** One more than the largest action in the training events. */
function countActions(source: SequenceSource): number {
  if (!source.hasAction) {
    throw new UserError('no-actions', 'model.actions is on, and the data has no actions', 'Prepare with --action.');
  }
  let largest = 0;
  const { trainEnd } = source.split;
  const longest = trainEnd.reduce((most, end) => Math.max(most, end), 0);
  const into = { item: new Int32Array(longest), action: new Int32Array(longest) };
  for (let user = 0; user < source.users; user++) {
    source.read(user, 0, trainEnd[user]!, into, 0);
    for (const action of into.action.subarray(0, trainEnd[user])) largest = Math.max(largest, action);
  }
  if (largest < MOST_ACTIONS) return largest + 1;
  throw new UserError(
    'too-many-actions',
    `the largest action is ${largest}, beyond ${MOST_ACTIONS}: that is not an action code`,
    'Name another column with --action when preparing, or set model.actions: false.',
  );
}

/** A store's item feature as small integers: labels and codes directly, other numbers by bucket. */
function readSideFeature(source: SequenceSource, name: string): SideFeature {
  const tables = source instanceof SequenceStore ? source.index.features.filter(({ of }) => of === 'item') : [];
  const table = tables.find(({ columns }) => columns.some(column => column.name === name));
  if (!(source instanceof SequenceStore) || !table) {
    const known = tables.flatMap(({ columns }) => columns.map(column => column.name));
    throw new UserError(
      'no-such-feature',
      `model.sideFeatures: the data has no item feature "${name}"`,
      known.length > 0
        ? `There are: ${known.join(', ')}.`
        : 'Prepare with --items <file>: its columns become item features.',
    );
  }
  const file = new SafetensorsFile(join(source.folder, table.file));
  const isLabel = table.columns.some(column => column.name === name && column.dtype === 'I32');
  const values = isLabel ? file.read(name, 'I32') : file.read(name, 'F32');
  file.close();
  const ofItem = new Int32Array(source.items).fill(-1);
  const category = values instanceof Int32Array || isCategory(values) ? (value: number) => value : numberBucket;
  values.forEach((value, item) => {
    const missing = values instanceof Int32Array ? value < 0 : Number.isNaN(value);
    if (!missing) ofItem[item] = category(value);
  });
  return { name, rows: Math.max(1, ofItem.reduce((most, value) => Math.max(most, value), -1) + 1), ofItem };
}

/** Small whole numbers, such as codes and years, are used as categories. */
function isCategory(values: Float32Array): boolean {
  return values.every(
    value => Number.isNaN(value) || (Number.isInteger(value) && value >= 0 && value < MOST_CATEGORIES),
  );
}

/** Buckets per doubling, and the range in doublings above and below 1. */
const PER_DOUBLING = 4;
const DOUBLINGS = 24;

/**
 * Any other number gets a bucket by sign and magnitude. It depends only on the number, so a value means the same in every
 * store.
 */
export function numberBucket(value: number): number {
  const most = 2 * DOUBLINGS * PER_DOUBLING;
  const size = Math.floor((Math.log2(Math.abs(value)) + DOUBLINGS) * PER_DOUBLING) + 1;
  const bounded = value === 0 ? 0 : Math.min(Math.max(size, 1), most);
  return value < 0 ? most + bounded : bounded;
}
