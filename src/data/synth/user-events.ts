// One synthetic user's events in order: when (clock), what (walk), with what reaction (feedback).
// Each user is a function of (seed, user, number of events) alone, so users can be made in any order.

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
  /** How much the user cares for the video's topic, in (0, 1). */
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

  /** The moment of the next event; `watch` must follow. */
  arrive(): void {
    if (this.#clock.next()) this.#walk.beginSession();
    this.timeMs = this.#clock.time;
  }

  /** Between `arrive` and `watch`: the ranking that the hidden state of the user makes best. */
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
