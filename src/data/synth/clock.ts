// Event times of a synthetic user: sessions over KuaiRand's 31 days, more of them at noon and in the evening (GMT+8), with
// consecutive videos within a session. Times ascend and stay within the period.

import { Random } from '../../util/random.js';

const HOUR = 3_600_000;
export const DAY = 24 * HOUR;
/** 2022-04-08 00:00 in GMT+8, and the same hour of 2022-05-09. */
export const PERIOD_START = Date.UTC(2022, 3, 8) - 8 * HOUR;
export const PERIOD_DAYS = 31;
export const PERIOD_END = PERIOD_START + PERIOD_DAYS * DAY;
/** KuaiRand cuts its standard log at 2022-04-22. */
export const SECOND_HALF_START = PERIOD_START + 14 * DAY;

/** Relative frequency of session starts by hour of the day. */
const HOURLY = [3, 2, 1, 1, 1, 1, 2, 4, 5, 5, 5, 6, 9, 8, 6, 5, 5, 6, 8, 9, 10, 11, 10, 6];
const HOURLY_TOTAL = HOURLY.reduce((sum, share) => sum + share, 0);

/** Mean time between two events of a session, and the share of the period that the most active users may fill. */
const TYPICAL_GAP = 13_000;
const BUSIEST = 0.4;

/** Start of a session from its quantile in (0, 1) among all sessions. */
function sessionTime(place: number): number {
  const days = place * PERIOD_DAYS;
  const day = Math.floor(days);
  let point = (days - day) * HOURLY_TOTAL;
  let hour = 0;
  while (point >= HOURLY[hour]!) point -= HOURLY[hour++]!;
  return PERIOD_START + day * DAY + (hour + point / HOURLY[hour]!) * HOUR;
}

export class Clock {
  readonly #random: Random;
  #time = 0;
  #place = 0;
  #eventsLeft = 0;
  #sessionsLeft = 0;
  #sessionEventsLeft = 0;
  #pace = 1;

  constructor(seed: number) {
    this.#random = new Random(seed, 'synth times');
  }

  start(user: number, events: number): void {
    this.#random.stream(user);
    const sessionLength = Math.min(80, Math.max(4, 0.6 * Math.sqrt(events)));
    this.#time = PERIOD_START;
    this.#place = 0;
    this.#eventsLeft = events;
    this.#sessionsLeft = Math.ceil(events / sessionLength);
    this.#sessionEventsLeft = 0;
    this.#pace = Math.min(1, (BUSIEST * (PERIOD_END - PERIOD_START)) / (events * TYPICAL_GAP));
  }

  /** Below 1 for users with too many events for the normal pace; scales the argument of `elapse`. */
  get pace(): number {
    return this.#pace;
  }

  /** Time of the current event, in milliseconds since 1970. */
  get time(): number {
    return Math.min(Math.floor(this.#time), PERIOD_END - 1);
  }

  /** Moves to the next event; true if it starts a session. */
  next(): boolean {
    const opens = this.#sessionEventsLeft === 0;
    if (opens) this.#openSession();
    this.#sessionEventsLeft--;
    this.#eventsLeft--;
    return opens;
  }

  /** Advances by the watch time and a pause to choose the next video. */
  elapse(watchedMs: number): void {
    this.#time += watchedMs + this.#pace * 1_000 * this.#random.exponential();
  }

  #openSession(): void {
    // The minimum of the remaining draws, so that the starts are generated in order without a list.
    this.#place += (1 - this.#place) * (1 - this.#random.uniform() ** (1 / this.#sessionsLeft));
    this.#time = Math.max(this.#time + 1_000, sessionTime(this.#place));
    const others = --this.#sessionsLeft;
    const share = Math.ceil((this.#eventsLeft / (others + 1)) * this.#random.exponential());
    this.#sessionEventsLeft = others === 0 ? this.#eventsLeft : Math.min(share, this.#eventsLeft - others);
  }
}
