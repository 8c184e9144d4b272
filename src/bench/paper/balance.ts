// Load balance: waiting for the slowest of 16 ranks, simulated by the cost model of HSTU-large on sequence lengths.

import { resolveShape } from '../../data/synth/shape.js';
import { Random } from '../../util/random.js';
import { formatCount, formatShare } from '../../util/terminal.js';
import { simulateBalance } from '../balance.js';
import type { PaperRow, Section } from './row.js';

const RANKS = 16;

/** Lengths of a log of short histories, geometric with the mean of Amazon-like logs, two at least. */
function shortLengths(): Int32Array {
  const random = new Random(1, 'short histories');
  return Int32Array.from({ length: 50_000 }, () => 2 + Math.floor(7 * random.exponential()));
}

export const balance: Section = {
  id: 'balance',
  title: 'Load balance over 16 ranks (simulated)',
  about:
    'Share of the step that the average rank waits for the slowest, and the largest difference in tokens. A simulation: sequence lengths are drawn, their cost is that of HSTU-large. Fixed: the same number of sequences for every rank; reallocated: global token reallocation.',
  async measure({ quick }) {
    const steps = quick ? 10 : 50;
    const kuairand = resolveShape({ scale: 1, videos: 2 ** 25 }).lengths;
    const cases = [
      {
        name: 'KuaiRand-shaped',
        lengths: kuairand,
        maxLength: 4096,
        tokens: 32_768,
        paper: ['47.01', '2.40', '10,726', '559'],
      },
      {
        name: 'short histories',
        lengths: shortLengths(),
        maxLength: 50,
        tokens: 8192,
        paper: ['3.55', '1.48', '623', '31'],
      },
    ] as const;
    return cases.flatMap(({ name, lengths, maxLength, tokens, paper }): PaperRow[] => {
      const rows = simulateBalance(lengths, { ranks: RANKS, tokens, maxLength, steps });
      const [fixed, reallocated] = ['fixed', 'reallocated'].map(policy => rows.find(row => row.policy === policy)!);
      return [
        {
          section: 'balance',
          name: `${name}: waiting, fixed -> reallocated`,
          paper: `${paper[0]} -> ${paper[1]} %`,
          ours: `${formatShare(fixed!.wait)} -> ${formatShare(reallocated!.wait)} (simulated)`,
          figures: { fixed: fixed!.wait, reallocated: reallocated!.wait },
        },
        {
          section: 'balance',
          name: `${name}: token difference, fixed -> reallocated`,
          paper: `${paper[2]} -> ${paper[3]}`,
          ours: `${formatCount(fixed!.max_token_diff)} -> ${formatCount(reallocated!.max_token_diff)} (simulated)`,
          figures: { fixed: fixed!.max_token_diff, reallocated: reallocated!.max_token_diff },
        },
      ];
    });
  },
};
