// Reallocation under a limit: the even assignment of `reallocate`, repaired where a lane would exceed it.
// A pure function of its arguments, like `reallocate`.

import type { CostModel } from './cost.js';
import { reallocate } from './reallocate.js';

/** Capacity of a lane. */
export type LaneLimit = { readonly tokens: number } | { readonly sequences: number };

/**
 * The lane of each sequence, or undefined if a bounded number of exchanges cannot bring the even assignment within the limit.
 * Deterministic: ties go to the lower lane, then to the lower sequence.
 */
export function reallocateWithin(
  lengths: Int32Array,
  lanes: number,
  model: CostModel,
  limit: LaneLimit,
): Int32Array | undefined {
  const weights = 'tokens' in limit ? lengths : new Int32Array(lengths.length).fill(1);
  return new Repair(reallocate(lengths, lanes, model), weights, lanes, Object.values(limit)[0]!).run();
}

interface Relief {
  /** By how much the exchange relieves the overfull lane. */
  relief: number;
  partner: number;
  given: number;
  /** -1: a move, nothing comes back. */
  taken: number;
}

class Repair {
  readonly #owner: Int32Array;
  readonly #weights: Int32Array;
  readonly #loads: Float64Array;
  readonly #limit: number;
  /** Sequences of each lane, ascending. */
  readonly #sequences: number[][];

  constructor(owner: Int32Array, weights: Int32Array, lanes: number, limit: number) {
    this.#owner = owner;
    this.#weights = weights;
    this.#limit = limit;
    this.#loads = new Float64Array(lanes);
    this.#sequences = Array.from({ length: lanes }, () => []);
    owner.forEach((lane, i) => {
      this.#loads[lane]! += weights[i]!;
      this.#sequences[lane]!.push(i);
    });
  }

  run(): Int32Array | undefined {
    // Each exchange relieves an overfull lane and overfills none, so this terminates; the bound keeps hopeless cases short.
    for (let left = this.#owner.length; left >= 0; left--) {
      const fullest = this.#loads.indexOf(Math.max(...this.#loads));
      if (this.#loads[fullest]! <= this.#limit) return this.#owner;
      const best = this.#bestExchange(fullest);
      if (best.partner < 0) return undefined;
      this.#move(best.given, best.partner);
      if (best.taken >= 0) this.#move(best.taken, fullest);
    }
    return undefined;
  }

  /** The smallest sufficient relief, or else the largest. */
  #bestExchange(from: number): Relief {
    const excess = this.#loads[from]! - this.#limit;
    let best: Relief = { relief: 0, partner: -1, given: -1, taken: -1 };
    const consider = (candidate: Relief): void => {
      const { relief } = candidate;
      const better = best.relief >= excess ? relief >= excess && relief < best.relief : relief > best.relief;
      if (better) best = candidate;
    };
    for (let partner = 0; partner < this.#loads.length; partner++) {
      const room = this.#limit - this.#loads[partner]!;
      if (partner === from || room <= 0) continue;
      for (const given of this.#sequences[from]!) {
        const weight = this.#weights[given]!;
        if (weight <= room) consider({ relief: weight, partner, given, taken: -1 });
        for (const taken of this.#sequences[partner]!) {
          const relief = weight - this.#weights[taken]!;
          if (relief > 0 && relief <= room) consider({ relief, partner, given, taken });
        }
      }
    }
    return best;
  }

  #move(sequence: number, to: number): void {
    const from = this.#owner[sequence]!;
    this.#loads[from]! -= this.#weights[sequence]!;
    this.#loads[to]! += this.#weights[sequence]!;
    this.#sequences[from]!.splice(this.#sequences[from]!.indexOf(sequence), 1);
    this.#sequences[to]!.push(sequence);
    this.#sequences[to]!.sort((a, b) => a - b);
    this.#owner[sequence] = to;
  }
}
