// Load balance, simulated: waiting for the slowest of 16 ranks over many steps, by the cost model of HSTU-large.

import { formatCount, formatShare } from '../../util/terminal.js';
import { simulateBalance } from '../balance.js';
import { type Population, POPULATIONS, RANKS } from './populations.js';
import type { PaperRow, Section } from './row.js';

export const balance: Section = {
  id: 'balance',
  title: 'Load balance over 16 ranks (simulated)',
  about:
    'Share of the step that the average rank waits for the slowest, and the largest difference in tokens. Lengths are drawn, with the cost of HSTU-large. Fixed: the same number of sequences for every rank; reallocated: global token reallocation.',
  parts: POPULATIONS.map(population => ({
    id: population.name,
    measure: ({ quick }) => Promise.resolve(simulated(population, quick ? 10 : 50)),
  })),
};

function simulated({ name, lengths, maxLength, tokens, paper }: Population, steps: number): PaperRow[] {
  const rows = simulateBalance(lengths(), { ranks: RANKS, tokens, maxLength, steps });
  const [fixed, reallocated] = ['fixed', 'reallocated'].map(policy => rows.find(row => row.policy === policy)!);
  return [
    {
      name: `${name}: waiting, fixed -> reallocated`,
      paper: paper.waiting,
      ours: `${formatShare(fixed!.wait)} -> ${formatShare(reallocated!.wait)}`,
      figures: { fixed: fixed!.wait, reallocated: reallocated!.wait },
    },
    {
      name: `${name}: token difference, fixed -> reallocated`,
      paper: paper.difference,
      ours: `${formatCount(fixed!.max_token_diff)} -> ${formatCount(reallocated!.max_token_diff)}`,
      figures: { fixed: fixed!.max_token_diff, reallocated: reallocated!.max_token_diff },
    },
  ];
}
