// Feedback of a synthetic user: KuaiRand's feedback columns, driven by the user's interest in the topic and the quality of the
// video. Rates are close to KuaiRand's: about 4 in 10 shown videos clicked, 1 or 2 in 100 liked.

import { Random } from '../../util/random.js';
import type { VideoCatalogue } from './video-catalogue.js';

/** Tab of the app: mostly 1, chosen by the low bits of a random word whose high bits are used elsewhere. */
const TABS = [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 2, 4, 6];

export class Feedback {
  readonly #catalogue: VideoCatalogue;
  readonly #random: Random;
  click = 0;
  like = 0;
  follow = 0;
  comment = 0;
  forward = 0;
  hate = 0;
  longView = 0;
  profileEnter = 0;
  playTimeMs = 0;
  durationMs = 0;
  profileStayMs = 0;
  commentStayMs = 0;
  tab = 0;

  constructor(catalogue: VideoCatalogue, seed: number, purpose: string) {
    this.#catalogue = catalogue;
    this.#random = new Random(seed, purpose);
  }

  start(user: number): void {
    this.#random.stream(user);
  }

  /** Fills the fields for one shown video; `interest` in [0, 1], `pace` as the clock's. */
  react(video: number, interest: number, pace: number): void {
    const random = this.#random;
    const affinity = 0.6 * Math.min(1, 1.5 * interest) + 0.4 * this.#catalogue.quality(video);
    const word = random.uint32();
    const mood = word / 0x1_0000_0000;
    this.durationMs = this.#catalogue.durationMs(video);
    this.tab = TABS[word & 15]!;
    this.click = mood < 0.05 + 0.7 * affinity ? 1 : 0;
    this.like = this.follow = this.comment = this.forward = this.hate = 0;
    this.profileEnter = this.longView = this.profileStayMs = this.commentStayMs = 0;
    if (this.click === 0) {
      this.hate = mood > 1 - 0.001 * (1 - affinity) ? 1 : 0;
      this.playTimeMs = Math.floor(pace * Math.min(this.durationMs, 2_000 * random.exponential()));
      return;
    }
    const share = Math.min(1.5, 0.25 + 1.1 * affinity * random.exponential());
    this.playTimeMs = Math.floor(pace * share * this.durationMs);
    this.longView = share > 0.5 ? 1 : 0;
    const warmth = random.uniform() / affinity;
    if (warmth >= 0.08) return; // most clicks end here, without a further draw
    this.like = 1;
    this.forward = warmth < 0.004 ? 1 : 0;
    this.follow = warmth < 0.006 ? 1 : 0;
    this.comment = random.uniform() < 0.12 ? 1 : 0;
    if (this.comment === 1) this.commentStayMs = Math.floor(8_000 * random.exponential());
    this.profileEnter = random.uniform() < 0.3 ? 1 : 0;
    if (this.profileEnter === 1) this.profileStayMs = Math.floor(5_000 * random.exponential());
  }
}
