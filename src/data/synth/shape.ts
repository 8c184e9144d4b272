// Size of a synthetic log: users, videos, and every user's number of events, known before the first row is written.
// KuaiRand-27K's shape: lengths lognormal(9.06, 0.80) clipped to 100..228,000; everything scales down from there.

import { UserError } from '../../util/errors.js';
import { Random } from '../../util/random.js';

const KUAIRAND_USERS = 27_285;
const LENGTH_MU = 9.06;
const LENGTH_SIGMA = 0.8;
const SHORTEST = 100;
const LONGEST = 228_000;
/** Mean of the lognormal, before clipping. */
const KUAIRAND_MEAN_LENGTH = Math.exp(LENGTH_MU + LENGTH_SIGMA ** 2 / 2);
const VIDEOS_PER_EVENT = 32_038_725 / 322_278_385;
/** Users watch no video twice, so histories must be much shorter than the catalogue. */
const MOST_OF_CATALOGUE = 0.25;
const FEWEST_EVENTS = 5;
const FEWEST_VIDEOS = 50;
/** Upper bound for exact arithmetic on video ids. */
const MOST_VIDEOS = 2 ** 26;

export interface ShapeOptions {
  /** Share of KuaiRand-27K's users (default 0.01, unless users or rows are given). */
  scale?: number;
  users?: number;
  /** Exact number of events: as many users as needed, the last one truncated. */
  rows?: number;
  /** Catalogue size. Default: a tenth of the events, as in KuaiRand. */
  videos?: number;
  /** Mean events per user (default 11,849, as in KuaiRand). The clipping bounds scale with it. */
  meanLength?: number;
  seed?: number;
}

export interface LogShape {
  seed: number;
  videos: number;
  events: number;
  /** Events of each user. */
  lengths: Int32Array;
}

function requirePositive(options: ShapeOptions): void {
  for (const name of ['scale', 'users', 'rows', 'videos', 'meanLength'] as const) {
    const value = options[name];
    if (value === undefined || (Number.isFinite(value) && value > 0)) continue;
    throw new UserError('bad-synth-option', `${name} is ${value}`, 'Use a number above 0.');
  }
}

/** Lengths of users 0, 1, 2, ...: each a function of seed and user alone. */
function* drawLengths(seed: number, meanLength: number, videos: number): Generator<number, never> {
  const scale = meanLength / KUAIRAND_MEAN_LENGTH;
  const most = Math.max(FEWEST_EVENTS, Math.floor(Math.min(LONGEST * scale, MOST_OF_CATALOGUE * videos)));
  const fewest = Math.min(most, Math.max(FEWEST_EVENTS, Math.round(SHORTEST * scale)));
  const random = new Random(seed, 'synth lengths');
  for (let user = 0; ; user++) {
    const drawn = Math.round(scale * Math.exp(LENGTH_MU + LENGTH_SIGMA * random.stream(user).normal()));
    yield Math.max(fewest, Math.min(most, drawn));
  }
}

export function resolveShape(options: ShapeOptions): LogShape {
  requirePositive(options);
  const seed = options.seed ?? 1;
  const meanLength = options.meanLength ?? KUAIRAND_MEAN_LENGTH;
  const users = Math.max(1, Math.round(options.users ?? KUAIRAND_USERS * (options.scale ?? 0.01)));
  const rows = options.rows === undefined ? undefined : Math.ceil(options.rows);
  const expected = rows ?? users * meanLength;
  const videos = Math.round(options.videos ?? Math.max(FEWEST_VIDEOS, expected * VIDEOS_PER_EVENT));
  if (videos < FEWEST_VIDEOS || videos > MOST_VIDEOS) {
    throw new UserError('bad-synth-option', `videos is ${videos}`, `Give ${FEWEST_VIDEOS} to ${MOST_VIDEOS}.`);
  }
  const lengths: number[] = [];
  let events = 0;
  for (const drawn of drawLengths(seed, meanLength, videos)) {
    if (rows === undefined ? lengths.length >= users : events >= rows) break;
    const length = rows === undefined ? drawn : Math.min(drawn, rows - events);
    lengths.push(length);
    events += length;
  }
  return { seed, videos, events, lengths: Int32Array.from(lengths) };
}
