// Rows of KuaiRand's log files: 19 columns, in its order, times both as milliseconds and as local date and hour.

import { KUAIRAND_FLAGS } from '../prepare/presets.js';
import { DAY, PERIOD_DAYS, PERIOD_START } from './clock.js';
import type { CsvWriter } from './csv-writer.js';
import type { Feedback } from './feedback.js';

export const LOG_COLUMNS = [
  'user_id',
  'video_id',
  'date',
  'hourmin',
  'time_ms',
  ...KUAIRAND_FLAGS,
  'play_time_ms',
  'duration_ms',
  'profile_stay_time',
  'comment_stay_time',
  'is_profile_enter',
  'is_rand',
  'tab',
] as const;

/** 20220408 and so on, in GMT+8. */
const DATES = Array.from({ length: PERIOD_DAYS }, (_, day) =>
  Number(new Date(Date.UTC(2022, 3, 8 + day)).toISOString().slice(0, 10).replaceAll('-', '')),
);

export interface LogEvent {
  user: number;
  video: number;
  timeMs: number;
  feedback: Feedback;
  /** 1 for a randomly shown video, 0 for a recommended one. */
  isRandom: number;
}

export function writeLogRow(csv: CsvWriter, { user, video, timeMs, feedback, isRandom }: LogEvent): void {
  const sinceStart = timeMs - PERIOD_START;
  const day = Math.floor(sinceStart / DAY);
  const minute = Math.floor((sinceStart - day * DAY) / 60_000);
  csv.number(user);
  csv.number(video);
  csv.number(DATES[day]!);
  csv.number(Math.floor(minute / 60) * 100 + (minute % 60));
  csv.number(timeMs);
  csv.flag(feedback.click);
  csv.flag(feedback.like);
  csv.flag(feedback.follow);
  csv.flag(feedback.comment);
  csv.flag(feedback.forward);
  csv.flag(feedback.hate);
  csv.flag(feedback.longView);
  csv.number(feedback.playTimeMs);
  csv.number(feedback.durationMs);
  csv.number(feedback.profileStayMs);
  csv.number(feedback.commentStayMs);
  csv.flag(feedback.profileEnter);
  csv.flag(isRandom);
  csv.number(feedback.tab);
  csv.endRow();
}
