// The videos of a synthetic user. The walk has structure that a sequence model can learn and simpler models cannot:
//
//   taste    a user follows a few topics at a time, with individual weights; a session may replace one (drift)
//   threads  each topic is a thread that resumes where *it* stopped, however many other events lie in between: mostly
//            the next video of the series, sometimes skipping one or two, otherwise a popular one of the topic
//   novelty  no video twice: a thread that keeps proposing watched ones is replaced by a new topic
//
// First-order Markov sees only the last event's thread, popularity sees none. The true distribution of the next video
// is known in closed form, so the walk also provides the best possible ranking (`bestVideos`).

import { Random } from '../../util/random.js';
import type { VideoCatalogue } from './video-catalogue.js';

const THREADS = 4;
/** Probability that a thread continues its series, and how: next video, skip one, skip two. */
const FOLLOW = 0.75;
const FOLLOW_SHARES = [0.6, 0.25, 0.15];
/** Probability that a new session replaces a thread. */
const DRIFT = 0.25;
/** Watched videos drawn in a row before the thread is replaced, and before a repeat is accepted after all. */
const PATIENCE = 8;
const LAST_RESORT = 64;

interface Thread {
  topic: number;
  weight: number;
  /** Rank of the thread's latest video, -1 before its first. */
  rank: number;
}

/** Open-addressing set of video ids, cleared and reused for each user. */
class SeenVideos {
  #slots = new Int32Array(1024);
  #mask = 0;

  reset(events: number): void {
    let capacity = 1024;
    while (capacity < 2 * events) capacity *= 2;
    if (capacity > this.#slots.length) this.#slots = new Int32Array(capacity);
    else this.#slots.fill(0, 0, capacity);
    this.#mask = capacity - 1;
  }

  /** The slot of `id` (stored plus one, as 0 marks a free slot), or the free one where it belongs. */
  #slot(id: number): number {
    let slot = Math.imul(id, 0x9e3779b1) & this.#mask;
    while (this.#slots[slot] !== 0 && this.#slots[slot] !== id + 1) slot = (slot + 1) & this.#mask;
    return slot;
  }

  has(id: number): boolean {
    return this.#slots[this.#slot(id)] !== 0;
  }

  /** False if it was already present. */
  add(id: number): boolean {
    const slot = this.#slot(id);
    if (this.#slots[slot] !== 0) return false;
    this.#slots[slot] = id + 1;
    return true;
  }
}

export class UserWalk {
  readonly #catalogue: VideoCatalogue;
  readonly #random: Random;
  readonly #seen = new SeenVideos();
  readonly #threads: Thread[] = Array.from({ length: THREADS }, () => ({ topic: 0, weight: 0, rank: -1 }));
  #weightSum = 0;
  /** Thread of the latest event. */
  #current = 0;

  constructor(catalogue: VideoCatalogue, seed: number) {
    this.#catalogue = catalogue;
    this.#random = new Random(seed, 'synth videos');
  }

  /** Starts user `user`, who will watch `events` videos. */
  start(user: number, events: number): void {
    this.#random.stream(user);
    this.#seen.reset(events);
    for (const thread of this.#threads) thread.topic = -1;
    for (let t = 0; t < THREADS; t++) this.#renew(t);
  }

  beginSession(): void {
    if (this.#random.uniform() < DRIFT) this.#renew(this.#random.below(THREADS));
  }

  /** The next video's id. */
  next(): number {
    for (let draw = 1; ; draw++) {
      this.#current = this.#drawThread();
      const thread = this.#threads[this.#current]!;
      const rank = this.#drawRank(thread);
      const video = this.#catalogue.id(thread.topic, rank);
      if (this.#seen.add(video) || draw === LAST_RESORT) {
        thread.rank = rank;
        return video;
      }
      if (draw % PATIENCE === 0) this.#renew(this.#current);
    }
  }

  /** The user's interest in the latest video's topic, in (0, 1). */
  get interest(): number {
    return this.#threads[this.#current]!.weight / this.#weightSum;
  }

  /** The `count` unseen videos most likely to come next, best first, given the hidden state. */
  bestVideos(count: number): number[] {
    const candidates: { video: number; chance: number }[] = [];
    for (const thread of this.#threads) {
      const ranks = new Set<number>();
      if (thread.rank >= 0) {
        for (let j = 0; j < FOLLOW_SHARES.length; j++) {
          ranks.add(this.#catalogue.seriesRank(thread.topic, thread.rank, j + 1));
        }
      }
      // Popularity decreases with rank, so only the first `count` unseen videos can be among the best.
      const size = this.#catalogue.topicSize(thread.topic);
      for (let rank = 0, unseen = 0; rank < size && unseen < count; rank++) {
        if (this.#seen.has(this.#catalogue.id(thread.topic, rank))) continue;
        ranks.add(rank);
        unseen++;
      }
      for (const rank of ranks) {
        const video = this.#catalogue.id(thread.topic, rank);
        if (!this.#seen.has(video)) candidates.push({ video, chance: thread.weight * this.#rankChance(thread, rank) });
      }
    }
    candidates.sort((x, y) => y.chance - x.chance || x.video - y.video);
    return candidates.slice(0, count).map(candidate => candidate.video);
  }

  #renew(t: number): void {
    const thread = this.#threads[t]!;
    let topic = this.#catalogue.sampleTopic(this.#random.uniform());
    while (this.#threads.some(other => other.topic === topic)) {
      topic = (topic + 1) % this.#catalogue.topics;
    }
    thread.topic = topic;
    thread.weight = Math.exp(0.5 * this.#random.normal());
    thread.rank = -1;
    this.#weightSum = this.#threads.reduce((sum, { weight }) => sum + weight, 0);
  }

  #drawThread(): number {
    let point = this.#random.uniform() * this.#weightSum;
    for (let t = 0; t < THREADS - 1; t++) {
      point -= this.#threads[t]!.weight;
      if (point < 0) return t;
    }
    return THREADS - 1;
  }

  /** Reuses one uniform number for two decisions: conditioned on the first, the rescaled remainder is uniform again. */
  #drawRank(thread: Thread): number {
    let point = this.#random.uniform();
    if (thread.rank < 0) return this.#catalogue.sampleRank(thread.topic, point);
    if (point >= FOLLOW) return this.#catalogue.sampleRank(thread.topic, (point - FOLLOW) / (1 - FOLLOW));
    point /= FOLLOW;
    let step = 0;
    while (step < FOLLOW_SHARES.length - 1 && point >= FOLLOW_SHARES[step]!) point -= FOLLOW_SHARES[step++]!;
    return this.#catalogue.seriesRank(thread.topic, thread.rank, step + 1);
  }

  #rankChance(thread: Thread, rank: number): number {
    const popular = this.#catalogue.popularity(thread.topic, rank);
    if (thread.rank < 0) return popular;
    let followed = 0;
    for (let j = 0; j < FOLLOW_SHARES.length; j++) {
      if (this.#catalogue.seriesRank(thread.topic, thread.rank, j + 1) === rank) followed += FOLLOW_SHARES[j]!;
    }
    return FOLLOW * followed + (1 - FOLLOW) * popular;
  }
}
