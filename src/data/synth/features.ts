// KuaiRand's user and video feature files, with its columns. Values are plausible and determined by the seed; only activity,
// duration and tag (the topic) are related to the log.

import { mixBits, type VideoCatalogue } from './video-catalogue.js';
import type { CsvWriter } from './csv-writer.js';

const ONE_HOT_SIZES = [2, 7, 50, 1471, 15, 34, 3, 118, 454, 7, 5, 5, 2, 2, 2, 2, 2, 2];

export const USER_COLUMNS = [
  'user_id',
  'user_active_degree',
  'is_lowactive_period',
  'is_live_streamer',
  'is_video_author',
  'follow_user_num',
  'follow_user_num_range',
  'fans_user_num',
  'fans_user_num_range',
  'friend_user_num',
  'friend_user_num_range',
  'register_days',
  'register_days_range',
  ...ONE_HOT_SIZES.map((_, i) => `onehot_feat${i}`),
];

export const VIDEO_COLUMNS = [
  'video_id',
  'author_id',
  'video_type',
  'upload_dt',
  'upload_type',
  'visible_status',
  'video_duration',
  'server_width',
  'server_height',
  'music_id',
  'music_type',
  'tag',
];

/** 137 with bounds 10, 100, 1000 -> (100,1000], quoted for its comma, as KuaiRand writes ranges. */
function rangeOf(value: number, bounds: readonly number[]): string {
  if (value === 0) return '0';
  const above = bounds.findIndex(bound => value <= bound);
  if (above === -1) return `${bounds.at(-1)}+`;
  return `"(${bounds[above - 1] ?? 0},${bounds[above]}]"`;
}

export function writeUserFeatures(csv: CsvWriter, lengths: Int32Array, seed: number): void {
  const mean = lengths.reduce((sum, length) => sum + length, 0) / lengths.length;
  for (let user = 0; user < lengths.length; user++) {
    const trait = (salt: number, size: number) => mixBits(mixBits(user + seed) ^ salt) % size;
    const activity = lengths[user]! / mean;
    csv.number(user);
    csv.text(activity > 1.2 ? 'full_active' : activity > 0.5 ? 'high_active' : 'middle_active');
    csv.flag(activity < 0.1 ? 1 : 0);
    csv.flag(trait(1, 50) === 0 ? 1 : 0);
    csv.flag(trait(2, 4) === 0 ? 1 : 0);
    for (const [salt, size] of [
      [3, 500],
      [4, 300],
      [5, 80],
    ] as const) {
      csv.number(trait(salt, size));
      csv.text(rangeOf(trait(salt, size), [10, 50, 100, 150, 250]));
    }
    const days = 8 + trait(6, 2_000);
    csv.number(days);
    csv.text(rangeOf(days, [7, 14, 30, 60, 90, 180, 365, 730]));
    for (let i = 0; i < ONE_HOT_SIZES.length; i++) csv.number(trait(100 + i, ONE_HOT_SIZES[i]!));
    csv.endRow();
  }
}

export function writeVideoFeatures(csv: CsvWriter, catalogue: VideoCatalogue): void {
  for (let topic = 0; topic < catalogue.topics; topic++) {
    for (let rank = 0; rank < catalogue.topicSize(topic); rank++) {
      const video = catalogue.id(topic, rank);
      csv.number(video);
      csv.number(mixBits(video + 11) % Math.max(1, Math.floor(catalogue.videos / 4)));
      csv.text('NORMAL');
      csv.text(`2022-0${1 + (mixBits(video + 12) % 3)}-1${mixBits(video + 13) % 10}`);
      csv.text('ShortImport');
      csv.text('public');
      csv.number(catalogue.durationMs(video));
      csv.number(720);
      csv.number(1280);
      csv.number(mixBits(video + 14));
      csv.number(9);
      csv.number(topic);
      csv.endRow();
    }
  }
}
