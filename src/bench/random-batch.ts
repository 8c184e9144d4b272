// Reproducible jagged batches for the benchmarks.
//
// B sequences, T tokens.

import type { JaggedBatch } from '../tensor/jagged.js';
import { Random } from '../util/random.js';

/** Lognormal lengths (sigma 0.8, mean 200) up to the token budget, the last one truncated to it; or one fixed length. */
export function drawLengths(tokens: number, length?: number): number[] {
  const random = new Random(1, 'bench lengths');
  const lengths: number[] = [];
  for (let left = tokens; left > 0; left -= lengths.at(-1)!) {
    const drawn = length ?? Math.max(2, Math.round(200 * Math.exp(0.8 * random.normal() - 0.32)));
    lengths.push(Math.min(left, drawn));
  }
  return lengths;
}

type DrawnBatch = Required<Omit<JaggedBatch, 'action'>>;

/** Items drawn uniformly. */
export function drawBatch(lengths: readonly number[], items: number): DrawnBatch {
  const random = new Random(1, 'bench batch');
  return fillBatch(lengths, random, () => random.below(items));
}

/** Item r with probability proportional to 1 / (r + 1) (Zipf's law); a different batch for each `number`. */
export function drawPopularBatch(lengths: readonly number[], items: number, number: number): DrawnBatch {
  const random = new Random(1, 'bench popular batch', number);
  return fillBatch(lengths, random, () => Math.min(items - 1, Math.floor(items ** random.uniform()) - 1));
}

function fillBatch(lengths: readonly number[], random: Random, draw: () => number): DrawnBatch {
  const offsets = new Int32Array(lengths.length + 1);
  lengths.forEach((n, i) => (offsets[i + 1] = offsets[i]! + n));
  const tokens = offsets.at(-1)!;
  const ids = (): Int32Array => Int32Array.from({ length: tokens }, draw);
  const time = new Float64Array(tokens);
  const nextTime = new Float64Array(tokens);
  for (const [s, n] of lengths.entries()) {
    let now = 1_650_000_000;
    for (let i = 0; i < n; i++) {
      time[offsets[s]! + i] = now;
      // Minutes within a session, occasionally days between sessions.
      now += Math.round(60 * random.exponential() * (random.below(20) === 0 ? 1500 : 1));
      nextTime[offsets[s]! + i] = now;
    }
  }
  return { offsets, item: ids(), target: ids(), time, nextTime };
}
