// How often people come back: the share of held-out events whose item is among the user's earlier ones, or is the very
// last of them.

import { type CaseOptions, evaluationCases, wholeHistory } from './cases.js';

export interface Repeats {
  repeatedTargets: number;
  /** The target is the item of the event right before it. */
  selfTargets: number;
}

export function repeats(options: Omit<CaseOptions, 'exclude'>): Repeats {
  let [cases, repeated, same] = [0, 0, 0];
  for (const { batch, targets } of evaluationCases({ ...options, exclude: 'none' })) {
    targets.forEach((target, c) => {
      const history = wholeHistory(options.source, batch, c);
      cases++;
      if (history.includes(target)) repeated++;
      if (history.at(-1) === target) same++;
    });
  }
  return { repeatedTargets: repeated / Math.max(1, cases), selfTargets: same / Math.max(1, cases) };
}
