// KuaiRand's video statistics: daily means over all users of the app. Here they are derived from the video's popularity and
// quality in the catalogue, never from the events of the log, so that they leak no test events.

import { mixBits, type VideoCatalogue } from './video-catalogue.js';
import type { CsvWriter } from './csv-writer.js';

/** Impressions per day in the whole app, distributed over the videos by popularity. */
const SHOWS_PER_VIDEO = 400;
const MOST_DAYS = 31;
/** Events of one user with one video, on average. */
const PER_USER = 1.1;

interface Traffic {
  shows: number;
  plays: number;
  quality: number;
  /** Milliseconds. */
  duration: number;
}

type Measure = (traffic: Traffic) => number;

/** A share of the plays, larger for better videos. */
const ofPlays =
  (share: number): Measure =>
  ({ plays, quality }) =>
    plays * share * (0.3 + 1.4 * quality);
const ofUsers =
  (measure: Measure): Measure =>
  traffic =>
    measure(traffic) / PER_USER;
/** A count and the users behind it. */
const counted = (name: string, measure: Measure): [string, Measure][] => [
  [`${name}_cnt`, measure],
  [`${name}_user_num`, ofUsers(measure)],
];

const progress: Measure = ({ quality }) => 0.05 + 0.5 * quality;

/** In the order of KuaiRand's file. */
const MEASURES: readonly [string, Measure][] = [
  ...counted('show', ({ shows }) => shows),
  ...counted('play', ({ plays }) => plays),
  ['play_duration', traffic => traffic.plays * traffic.duration * progress(traffic)],
  ...counted('complete_play', ofPlays(0.2)),
  ...counted('valid_play', ofPlays(0.6)),
  ...counted('long_time_play', ofPlays(0.4)),
  ...counted('short_time_play', ({ plays, quality }) => plays * 0.5 * (1.2 - quality)),
  ['play_progress', progress],
  ['comment_stay_duration', ofPlays(900)],
  ...counted('like', ofPlays(0.02)),
  ['click_like_cnt', ofPlays(0.012)],
  ['double_click_cnt', ofPlays(0.008)],
  ...counted('cancel_like', ofPlays(0.001)),
  ...counted('comment', ofPlays(0.004)),
  ['direct_comment_cnt', ofPlays(0.003)],
  ['reply_comment_cnt', ofPlays(0.001)],
  ...counted('delete_comment', ofPlays(0.0002)),
  ...counted('comment_like', ofPlays(0.003)),
  ...counted('follow', ofPlays(0.002)),
  ...counted('cancel_follow', ofPlays(0.0002)),
  ...counted('share', ofPlays(0.001)),
  ...counted('download', ofPlays(0.001)),
  ...counted('report', ofPlays(0.00005)),
  ...counted('reduce_similar', ({ plays, quality }) => plays * 0.001 * (1.2 - quality)),
  ...counted('collect', ofPlays(0.002)),
  ...counted('cancel_collect', ofPlays(0.0004)),
  ['direct_comment_user_num', ofUsers(ofPlays(0.003))],
  ['reply_comment_user_num', ofUsers(ofPlays(0.001))],
  ...counted('share_all', ofPlays(0.0015)),
  ['outsite_share_all_cnt', ofPlays(0.0005)],
];

export const STATISTIC_COLUMNS = ['video_id', 'counts', ...MEASURES.map(([name]) => name)];

/** Several writers get consecutive, equal parts. */
export function writeVideoStatistics(parts: readonly CsvWriter[], catalogue: VideoCatalogue): void {
  let written = 0;
  for (let topic = 0; topic < catalogue.topics; topic++) {
    const size = catalogue.topicSize(topic);
    for (let rank = 0; rank < size; rank++) {
      const csv = parts[Math.floor((written++ * parts.length) / catalogue.videos)]!;
      const video = catalogue.id(topic, rank);
      const quality = catalogue.quality(video);
      const shows = SHOWS_PER_VIDEO * size * catalogue.popularity(topic, rank);
      const traffic = { shows, plays: shows * (0.2 + 0.6 * quality), quality, duration: catalogue.durationMs(video) };
      csv.number(video);
      csv.number(1 + (mixBits(video + 15) % MOST_DAYS));
      for (const [, measure] of MEASURES) csv.thousandths(measure(traffic));
      csv.endRow();
    }
  }
}
