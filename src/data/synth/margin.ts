// What can be learned from a synthetic log: HR@10 on every user's last event for three rankings of the whole catalogue without
// watched videos: by popularity, by first-order Markov (most frequent successors of the last video, then popularity), and by
// the true distribution, the upper bound. A sequence model should be between the last two.

import type { VideoCatalogue } from './video-catalogue.js';
import type { LogShape } from './shape.js';
import { UserEvents } from './user-events.js';

const K = 10;
/** Above this many events the margin is measured on the first users only; the report states how many. */
const MOST_EVENTS = 2_000_000;

export interface Margin {
  users: number;
  events: number;
  popularity: number;
  markov: number;
  oracle: number;
}

export function measureMargin(catalogue: VideoCatalogue, shape: LogShape, mostEvents = MOST_EVENTS): Margin {
  let [users, events] = [0, 0];
  while (users < shape.lengths.length && (users === 0 || events + shape.lengths[users]! <= mostEvents)) {
    events += shape.lengths[users++]!;
  }
  const videos = new Int32Array(events);
  const ends = new Int32Array(users);
  let oracleHits = 0;
  const source = new UserEvents(catalogue, shape.seed);
  for (let user = 0, at = 0; user < users; user++) {
    const length = shape.lengths[user]!;
    source.start(user, length);
    for (let i = 0; i < length; i++) {
      source.arrive();
      const best = i === length - 1 ? source.bestVideos(K) : undefined;
      source.watch();
      videos[at++] = source.video;
      if (best?.includes(source.video)) oracleHits++;
    }
    ends[user] = at;
  }
  const log = { catalogue: catalogue.videos, videos, ends };
  const popular = popularOrder(log);
  const followers = followersOfLast(log);
  const share = (candidates: (user: number) => Int32Array[]) => hits(log, candidates) / users;
  return {
    users,
    events,
    popularity: share(() => [popular]),
    markov: share(user => [followers[user]!, popular]),
    oracle: oracleHits / users,
  };
}

interface WatchLog {
  /** Number of videos. */
  catalogue: number;
  videos: Int32Array;
  /** User u's events end before videos[ends[u]]; the last one is the target, excluded from all counts. */
  ends: Int32Array;
}

const startOf = (log: WatchLog, user: number): number => (user === 0 ? 0 : log.ends[user - 1]!);

/** Every watched video, most watched first. */
function popularOrder(log: WatchLog): Int32Array {
  const counts = new Int32Array(log.catalogue);
  for (const video of log.videos) counts[video]!++;
  for (const end of log.ends) counts[log.videos[end - 1]!]!--;
  const watched = Int32Array.from(new Set(log.videos)).filter(video => counts[video]! > 0);
  return watched.sort((x, y) => counts[y]! - counts[x]! || x - y);
}

/** For every user, the videos that followed the one before the target anywhere in the log, most frequent first. */
function followersOfLast(log: WatchLog): Int32Array[] {
  const counts = new Map<number, Map<number, number>>();
  const lastOf = (user: number) => (log.ends[user]! - startOf(log, user) < 2 ? -1 : log.videos[log.ends[user]! - 2]!);
  for (let user = 0; user < log.ends.length; user++) counts.set(lastOf(user), new Map());
  for (let user = 0; user < log.ends.length; user++) {
    for (let i = startOf(log, user) + 1; i < log.ends[user]! - 1; i++) {
      const row = counts.get(log.videos[i - 1]!);
      row?.set(log.videos[i]!, (row.get(log.videos[i]!) ?? 0) + 1);
    }
  }
  return Array.from({ length: log.ends.length }, (_, user) => {
    const row = counts.get(lastOf(user))!;
    return Int32Array.from(row.keys()).sort((x, y) => row.get(y)! - row.get(x)! || x - y);
  });
}

/** Number of users whose target is among the first K unwatched videos of their concatenated candidate lists. */
function hits(log: WatchLog, candidates: (user: number) => Int32Array[]): number {
  let count = 0;
  for (let user = 0; user < log.ends.length; user++) {
    const end = log.ends[user]!;
    const taken = new Set(log.videos.subarray(startOf(log, user), end - 1));
    const target = log.videos[end - 1]!;
    let room = K;
    search: for (const list of candidates(user)) {
      for (const video of list) {
        if (room === 0) break search;
        if (taken.has(video)) continue;
        if (video === target) {
          count++;
          break search;
        }
        taken.add(video);
        room--;
      }
    }
  }
  return count;
}
