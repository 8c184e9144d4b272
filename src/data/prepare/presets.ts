// Public data sets by name: the files of a download, their layout and columns. A preset only provides default options; explicit
// ones win.

import { readdirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { UserError } from '../../util/errors.js';
import type { FeatureTable, PrepareInput } from './options.js';

export interface Preset {
  /** One line for the help. */
  readonly about: string;
  /** Log files within the download, read in order of their names. */
  readonly log: RegExp;
  /** Log of randomly exposed items, never mixed with the standard log. */
  readonly randomLog?: RegExp;
  readonly options: Partial<PrepareInput>;
  /** Filters used in the literature; `keepAll` disables them. */
  readonly filters?: Partial<PrepareInput>;
  /** File that lists the whole catalogue. */
  readonly items?: { readonly file: RegExp; readonly dialect: PrepareInput['itemsDialect'] };
  readonly features?: readonly (Pick<FeatureTable, 'of' | 'key'> & { readonly files: RegExp })[];
}

/** As in the TurboGR paper: drops disliked videos and those without positive feedback, then those with few events. */
const KUAIRAND_FILTERS = {
  withoutActions: ['is_hate'],
  actions: ['is_click', 'is_like', 'is_follow', 'is_comment', 'is_forward', 'long_view'],
  minUser: 5,
  minItemUsers: 5,
};

/** Flag columns of KuaiRand's logs, in the order of its files. */
export const KUAIRAND_FLAGS = [
  'is_click',
  'is_like',
  'is_follow',
  'is_comment',
  'is_forward',
  'is_hate',
  'long_view',
] as const;

function kuairand(size: 'pure' | '1k' | '27k'): Preset {
  const part = size === '27k' ? String.raw`27k_part\d` : size;
  const named = (name: string): RegExp => new RegExp(String.raw`^${name}_${part}\.csv(\.gz)?$`);
  return {
    about: `KuaiRand-${size}: short videos, feedback flags as action bits`,
    log: named('log_standard_4_(08_to_4_21|22_to_5_08)'),
    randomLog: new RegExp(String.raw`^log_random_4_22_to_5_08_${size}\.csv(\.gz)?$`),
    options: {
      user: 'user_id',
      item: 'video_id',
      time: 'time_ms',
      timeUnit: 'ms',
      actionBits: [...KUAIRAND_FLAGS, 'is_profile_enter'],
    },
    filters: KUAIRAND_FILTERS,
    features: [
      { of: 'user', key: 'user_id', files: new RegExp(String.raw`^user_features_${size}\.csv(\.gz)?$`) },
      { of: 'item', key: 'video_id', files: new RegExp(String.raw`^video_features_basic_${size}\.csv(\.gz)?$`) },
      { of: 'item', key: 'video_id', files: new RegExp(String.raw`^video_features_statistic_${part}\.csv(\.gz)?$`) },
    ],
  };
}

const RATINGS = ['user', 'item', 'rating', 'timestamp'];
const BY_ROLE = { user: 'user', item: 'item', time: 'timestamp', rating: 'rating', timeUnit: 's' } as const;

function movielensCsv(size: string): Preset {
  return {
    about: `MovieLens ${size}: ratings.csv, with movies.csv as the catalogue`,
    log: /^ratings\.csv(\.gz)?$/,
    options: { user: 'userId', item: 'movieId', time: 'timestamp', rating: 'rating', timeUnit: 's' },
    items: { file: /^movies\.csv(\.gz)?$/, dialect: {} },
  };
}

export const PRESETS: Readonly<Record<string, Preset>> = {
  'kuairand-pure': kuairand('pure'),
  'kuairand-1k': kuairand('1k'),
  'kuairand-27k': kuairand('27k'),
  'ml-100k': {
    about: 'MovieLens 100K: u.data, with u.item as the catalogue',
    log: /^u\.data$/,
    options: { ...BY_ROLE, csv: { delimiter: '\t', quote: '', header: false, names: RATINGS } },
    items: { file: /^u\.item$/, dialect: { delimiter: '|', quote: '', header: false, encoding: 'latin-1' } },
  },
  'ml-1m': {
    about: 'MovieLens 1M: ratings.dat, with the 3,883 films of movies.dat as the catalogue',
    log: /^ratings\.dat$/,
    options: { ...BY_ROLE, csv: { delimiter: '::', quote: '', header: false, names: RATINGS } },
    items: {
      file: /^movies\.dat$/,
      dialect: { delimiter: '::', quote: '', header: false, names: ['item', 'title', 'genres'], encoding: 'latin-1' },
    },
  },
  'ml-20m': movielensCsv('20M'),
  'ml-32m': movielensCsv('32M'),
  'amazon-2014': {
    about: 'Amazon reviews 2014, 5-core: one JSON review per line',
    log: /^reviews_.*\.json(\.gz)?$/,
    options: {
      format: 'json',
      user: 'reviewerID',
      item: 'asin',
      time: 'unixReviewTime',
      rating: 'overall',
      timeUnit: 's',
      idType: 'text',
    },
  },
  'amazon-2018': {
    about: 'Amazon reviews 2018: ratings without a header (item, user, rating, time)',
    log: /\.csv(\.gz)?$/,
    options: {
      ...BY_ROLE,
      idType: 'text',
      csv: { delimiter: ',', header: false, names: ['item', 'user', 'rating', 'timestamp'] },
    },
  },
  'amazon-2023': {
    about: 'Amazon reviews 2023: user_id, parent_asin, rating, timestamp in ms',
    log: /\.csv(\.gz)?$/,
    options: {
      user: 'user_id',
      item: 'parent_asin',
      time: 'timestamp',
      rating: 'rating',
      timeUnit: 'ms',
      idType: 'text',
    },
  },
  yambda: {
    about: 'Yambda: Parquet of uid, item_id, timestamp, and event_type where there is one',
    log: /\.parquet$/,
    options: { format: 'parquet', user: 'uid', item: 'item_id', time: 'timestamp', timeUnit: 's' },
  },
};

export interface PresetChoice {
  /** Which log to read; filters apply to the standard one. */
  exposure?: 'standard' | 'random';
  /** Without the preset's filters. */
  keepAll?: boolean;
}

/** The options of a preset, for the files or the folder of a download. */
export function presetOptions(
  name: string,
  paths: readonly string[],
  { exposure = 'standard', keepAll = false }: PresetChoice = {},
): Partial<PrepareInput> {
  const preset = PRESETS[name];
  if (!preset) {
    throw new UserError(
      'unknown-preset',
      `there is no preset '${name}'`,
      `Use one of ${Object.keys(PRESETS).join(', ')}.`,
    );
  }
  const pattern = exposure === 'random' ? preset.randomLog : preset.log;
  if (!pattern) throw new UserError('no-random-log', `${name} has no log of random exposure`, 'Leave --exposure out.');
  const [only] = paths;
  const folder = paths.length === 1 && only !== undefined && isFolder(only) ? only : undefined;
  const files = folder === undefined ? [...paths] : namesLike(folder, pattern);
  if (files.length === 0) {
    throw new UserError(
      'no-file',
      `${folder} has no file named like ${pattern.source}`,
      `Give the folder of the ${name} download.`,
    );
  }
  const place = folder ?? dirname(files[0] ?? '.');
  const [itemsFile] = preset.items ? namesLike(place, preset.items.file) : [];
  return {
    ...preset.options,
    ...(exposure === 'standard' && !keepAll && preset.filters),
    files,
    ...(itemsFile !== undefined && { itemsFile, itemsDialect: preset.items?.dialect }),
    features: (preset.features ?? []).flatMap(({ of, key, files: named }) => {
      const found = namesLike(place, named);
      return found.length > 0 ? [{ of, key, files: found }] : [];
    }),
  };
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

function namesLike(folder: string, pattern: RegExp): string[] {
  if (!isFolder(folder)) return [];
  return readdirSync(folder)
    .filter(name => pattern.test(basename(name)))
    .sort()
    .map(name => join(folder, name));
}
