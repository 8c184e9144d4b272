// Synthetic interaction logs of KuaiRand-27K's shape at any size, from a seed, streamed to disk: one file, or a folder
// with KuaiRand's own file names. The same options give the same bytes.

import { basename, dirname, extname, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { makeFolder } from '../../util/atomic-file.js';
import { UserError } from '../../util/errors.js';
import { Random } from '../../util/random.js';
import { VideoCatalogue } from './video-catalogue.js';
import { PERIOD_END, SECOND_HALF_START } from './clock.js';
import { CsvWriter } from './csv-writer.js';
import { USER_COLUMNS, VIDEO_COLUMNS, writeUserFeatures, writeVideoFeatures } from './features.js';
import { Feedback } from './feedback.js';
import { LOG_COLUMNS, writeLogRow } from './log-rows.js';
import { type Margin, measureMargin } from './margin.js';
import { convertToParquet } from './parquet.js';
import { resolveShape, type LogShape, type ShapeOptions } from './shape.js';
import { UserEvents } from './user-events.js';
import { STATISTIC_COLUMNS, writeVideoStatistics } from './video-statistics.js';

export type SynthFormat = 'csv' | 'parquet';
export type SynthLayout = 'log' | 'kuairand';

export interface SynthOptions extends ShapeOptions {
  /** A file for the `log` layout, a folder for `kuairand`. */
  out: string;
  /** Default: by the extension of `out`; csv for a folder. */
  format?: SynthFormat;
  /**
   * `log`: one file with every event, user by user. `kuairand`: two files by date, a separate file of random exposures, user
   * features, video features and statistics. Default: `log` if `out` ends in .csv or .parquet.
   */
  layout?: SynthLayout;
  /** Size suffix in KuaiRand's file names (default 27k). */
  variant?: 'pure' | '1k' | '27k';
  /** False skips the HR@10 of baselines and oracle. */
  margin?: boolean;
  onProgress?: (events: number, total: number) => void;
  signal?: AbortSignal;
}

export interface SynthReport {
  files: { path: string; rows: number }[];
  seed: number;
  users: number;
  videos: number;
  events: number;
  /** Videos with any event, and with fewer than five: the cold tail. */
  videosSeen: number;
  videosCold: number;
  lengths: { min: number; median: number; mean: number; max: number };
  seconds: number;
  /** HR@10 on last events; absent if not requested. */
  margin?: Margin;
}

interface LogFiles {
  /** The file for an event at this time. */
  standard: (timeMs: number, user: number) => CsvWriter;
  random?: CsvWriter;
  userFeatures?: CsvWriter;
  videoFeatures?: CsvWriter;
  videoStatistics?: CsvWriter[];
  all: CsvWriter[];
}

function resolveOutput({ out, format, layout }: SynthOptions): { format: SynthFormat; layout: SynthLayout } {
  const ending = extname(out);
  const named = ending === '.csv' ? 'csv' : ending === '.parquet' ? 'parquet' : undefined;
  const chosen = { format: format ?? named ?? 'csv', layout: layout ?? (named ? 'log' : 'kuairand') } as const;
  if (chosen.layout === 'log' && named !== chosen.format) {
    throw new UserError(
      'bad-synth-out',
      `${basename(out)} does not end in .${chosen.format}`,
      `Name a file, for example --out log.${chosen.format}, or leave out --layout log to write a folder.`,
    );
  }
  return chosen;
}

/** Opens the files of the layout. Parquet is converted from CSV, so everything is first written as CSV. */
function openFiles({ out, variant = '27k' }: SynthOptions, layout: SynthLayout, shape: LogShape): LogFiles {
  const all: CsvWriter[] = [];
  const open = (path: string, columns: readonly string[]): CsvWriter => {
    const writer = new CsvWriter(path, columns.join(','));
    all.push(writer);
    return writer;
  };
  if (layout === 'log') {
    makeFolder(dirname(out));
    const only = open(out.replace(/\.parquet$/, '.parquet.csv'), LOG_COLUMNS);
    return { standard: () => only, all };
  }
  makeFolder(out);
  // The largest variant is split in two parts, here by halves of the users.
  const parts = variant === '27k' ? ['_part1', '_part2'] : [''];
  const openParts = (dates: string): CsvWriter[] =>
    parts.map(part => open(join(out, `log_standard_${dates}_${variant}${part}.csv`), LOG_COLUMNS));
  const first = openParts('4_08_to_4_21');
  const second = openParts('4_22_to_5_08');
  const partOf = (user: number) => Math.floor((user * parts.length) / shape.lengths.length);
  return {
    standard: (timeMs, user) => (timeMs < SECOND_HALF_START ? first : second)[partOf(user)]!,
    random: open(join(out, `log_random_4_22_to_5_08_${variant}.csv`), LOG_COLUMNS),
    userFeatures: open(join(out, `user_features_${variant}.csv`), USER_COLUMNS),
    videoFeatures: open(join(out, `video_features_basic_${variant}.csv`), VIDEO_COLUMNS),
    videoStatistics: (variant === '27k' ? ['_part1', '_part2', '_part3'] : ['']).map(part =>
      open(join(out, `video_features_statistic_${variant}${part}.csv`), STATISTIC_COLUMNS),
    ),
    all,
  };
}

function openOrExplain(options: SynthOptions, layout: SynthLayout, shape: LogShape): LogFiles {
  try {
    return openFiles(options, layout, shape);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new UserError('cannot-write', `cannot write ${options.out}: ${reason}`, 'Choose another --out.', {
      cause: error,
    });
  }
}

/** Random exposures: about 4 in 1,000 as many as standard ones, any video, at sorted times of the second half. */
class RandomExposures {
  readonly #catalogue: VideoCatalogue;
  readonly #random: Random;
  readonly #feedback: Feedback;

  constructor(catalogue: VideoCatalogue, seed: number) {
    this.#catalogue = catalogue;
    this.#random = new Random(seed, 'synth random exposures');
    this.#feedback = new Feedback(catalogue, seed, 'synth random feedback');
  }

  write(csv: CsvWriter, user: number, events: number): void {
    const random = this.#random.stream(user);
    this.#feedback.start(user);
    const count = Math.floor(events * 0.00368 + random.uniform());
    const times = Float64Array.from({ length: count }, () => random.uniform()).sort();
    for (const place of times) {
      const video = random.below(this.#catalogue.videos);
      const timeMs = Math.floor(SECOND_HALF_START + place * (PERIOD_END - SECOND_HALF_START));
      this.#feedback.react(video, 0.05, 1);
      writeLogRow(csv, { user, video, timeMs, feedback: this.#feedback, isRandom: 1 });
    }
  }
}

export async function synthesize(options: SynthOptions): Promise<SynthReport> {
  const began = performance.now();
  const { format, layout } = resolveOutput(options);
  const shape = resolveShape(options);
  const catalogue = new VideoCatalogue(shape.videos, shape.seed);
  const files = openOrExplain(options, layout, shape);
  let counts: Uint8Array;
  try {
    counts = await writeEvents(options, { catalogue, shape, files });
    if (files.userFeatures) writeUserFeatures(files.userFeatures, shape.lengths, shape.seed);
    if (files.videoFeatures) writeVideoFeatures(files.videoFeatures, catalogue);
    if (files.videoStatistics) writeVideoStatistics(files.videoStatistics, catalogue);
  } catch (error) {
    for (const file of files.all) file.abandon();
    throw error;
  }
  const written = files.all.map(file => ({ path: file.path, rows: file.rows }));
  for (const file of files.all) file.finish();
  if (format === 'parquet') {
    for (const file of written) {
      const parquet = file.path.replace(/(\.parquet)?\.csv$/, '.parquet');
      await convertToParquet(file.path, parquet);
      file.path = parquet;
    }
  }
  const seconds = (performance.now() - began) / 1000;
  const sorted = shape.lengths.toSorted();
  return {
    files: written,
    seed: shape.seed,
    users: shape.lengths.length,
    videos: shape.videos,
    events: shape.events,
    videosSeen: counts.reduce((sum, count) => sum + (count > 0 ? 1 : 0), 0),
    videosCold: counts.reduce((sum, count) => sum + (count < 5 ? 1 : 0), 0),
    lengths: {
      min: sorted[0]!,
      median: sorted[sorted.length >> 1]!,
      mean: shape.events / sorted.length,
      max: sorted.at(-1)!,
    },
    seconds,
    ...(options.margin !== false && { margin: measureMargin(catalogue, shape) }),
  };
}

interface Writing {
  catalogue: VideoCatalogue;
  shape: LogShape;
  files: LogFiles;
}

/** Writes every user's events; how often each video was watched, counted up to 255. */
async function writeEvents(options: SynthOptions, { catalogue, shape, files }: Writing): Promise<Uint8Array> {
  const counts = new Uint8Array(shape.videos);
  const events = new UserEvents(catalogue, shape.seed);
  const exposures = new RandomExposures(catalogue, shape.seed);
  const row = { user: 0, video: 0, timeMs: 0, feedback: events.feedback, isRandom: 0 };
  let [done, breath] = [0, 0];
  for (let user = 0; user < shape.lengths.length; user++) {
    const length = shape.lengths[user]!;
    events.start(user, length);
    row.user = user;
    for (let i = 0; i < length; i++) {
      events.arrive();
      events.watch();
      row.video = events.video;
      row.timeMs = events.timeMs;
      if (counts[row.video]! < 255) counts[row.video]!++;
      writeLogRow(files.standard(row.timeMs, user), row);
    }
    if (files.random) exposures.write(files.random, user, length);
    done += length;
    if (done - breath < 100_000) continue;
    breath = done;
    options.onProgress?.(done, shape.events);
    await setImmediate(); // yields to signals and the progress line
    options.signal?.throwIfAborted();
  }
  return counts;
}
