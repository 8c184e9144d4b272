// Length distributions to balance: KuaiRand's, and short histories like a shop's; with the paper's figures for both.

import { resolveShape } from '../../data/synth/shape.js';
import { Random } from '../../util/random.js';

export const RANKS = 16;

export interface Population {
  name: string;
  /** Events of each user. */
  lengths: () => Int32Array;
  /** Longest sequence of the model: longer histories are cut. */
  maxLength: number;
  /** Token budget per rank: simulated, measured. */
  tokens: number;
  measuredTokens: number;
  /** The paper's figures; `delay`: waiting of the average rank. */
  paper: { waiting: string; difference: string; step: string; delay?: string };
}

export const POPULATIONS: readonly Population[] = [
  {
    name: 'KuaiRand-shaped',
    lengths: () => resolveShape({ scale: 1, videos: 2 ** 25 }).lengths,
    maxLength: 4096,
    tokens: 32_768,
    measuredTokens: 8192,
    paper: {
      waiting: '47.01 -> 2.40 %',
      difference: '10,726 -> 559',
      step: '2,340 -> 1,540 ms (1.52x)',
      delay: '1,100 -> 37 ms',
    },
  },
  {
    name: 'short histories',
    lengths: shortLengths,
    maxLength: 50,
    tokens: 8192,
    measuredTokens: 2048,
    paper: { waiting: '3.55 -> 1.48 %', difference: '623 -> 31', step: '422 -> 405 ms (1.04x)' },
  },
];

/** Lengths of short histories: geometric with the mean of Amazon-like logs, at least two. */
function shortLengths(): Int32Array {
  const random = new Random(1, 'short histories');
  return Int32Array.from({ length: 50_000 }, () => 2 + Math.floor(7 * random.exponential()));
}
