// How a run's step time divides, from the samples of its ranks.

import type { RanksSampled, StepShares } from '../events/event.js';
import { meanShares } from '../train/step-shares.js';

type RankRow = RanksSampled['ranks'][number];

export interface RankView {
  /** Means over the ranks and samples of the run. */
  shares: StepShares;
  /** The same for each rank, and its tokens per step; since the number of ranks last changed. */
  ranks: RankRow[];
}

export class RankFigures {
  readonly #means: { shares: StepShares; seconds: number }[] = [];
  #latest: RanksSampled[] = [];

  add(event: RanksSampled): void {
    const equal = event.ranks.map(() => 1);
    const shares = meanShares(event.ranks, equal);
    if (!shares) return;
    this.#means.push({ shares, seconds: secondsOf(event) });
    if (this.#latest[0]?.ranks.length !== event.ranks.length) this.#latest = [];
    this.#latest.push(event);
  }

  /** Undefined before the first sample. */
  view(): RankView | undefined {
    const shares = meanShares(
      this.#means.map(mean => mean.shares),
      this.#means.map(({ seconds }) => seconds),
    );
    const weights = this.#latest.map(secondsOf);
    const steps = this.#latest.reduce((sum, event) => sum + event.steps, 0);
    const ranks = (this.#latest[0]?.ranks ?? []).map((_, rank): RankRow => {
      const samples = this.#latest.map(event => event.ranks[rank]!);
      const tokens = samples.reduce((sum, sample, i) => sum + sample.tokens * this.#latest[i]!.steps, 0) / steps;
      return { ...meanShares(samples, weights)!, tokens };
    });
    return shares && { shares, ranks };
  }
}

function secondsOf({ steps, milliseconds }: RanksSampled): number {
  return (steps * milliseconds) / 1000;
}
