// One synthetic user's events in order: time (clock), video (walk), reaction (feedback). Each user is a function of (seed,
// user, number of events) only, so users can be generated in any order.

import type { VideoCatalogue } from './video-catalogue.js';
import { Clock } from './clock.js';
import { Feedback } from './feedback.js';
import { UserWalk } from './user-walk.js';

export class UserEvents {
  readonly feedback: Feedback;
  readonly #clock: Clock;
  readonly #walk: UserWalk;
  video = 0;
  timeMs = 0;
  /** The user's interest in the video's topic, in (0, 1). */
  interest = 0;

  constructor(catalogue: VideoCatalogue, seed: number) {
    this.feedback = new Feedback(catalogue, seed, 'synth feedback');
    this.#clock = new Clock(seed);
    this.#walk = new UserWalk(catalogue, seed);
  }

  start(user: number, events: number): void {
    this.#clock.start(user, events);
    this.#walk.start(user, events);
    this.feedback.start(user);
  }

  /** The time of the next event; call `watch` afterwards. */
  arrive(): void {
    if (this.#clock.next()) this.#walk.beginSession();
    this.timeMs = this.#clock.time;
  }

  /** Between `arrive` and `watch`: the optimal ranking given the user's hidden state. */
  bestVideos(count: number): number[] {
    return this.#walk.bestVideos(count);
  }

  watch(): void {
    this.video = this.#walk.next();
    this.interest = this.#walk.interest;
    this.feedback.react(this.video, this.interest, this.#clock.pace);
    this.#clock.elapse(this.feedback.playTimeMs);
  }
}
