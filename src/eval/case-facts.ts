// Facts about the cases of an evaluation that do not depend on the ranker, in evaluation order: length of the history, and
// whether the target is a repeat.

import { type CaseOptions, evaluationCases, wholeHistory } from './cases.js';

export interface CaseFacts {
  /** [C] events before the target. */
  history: Int32Array;
  /** [C] 1 where the target is among the user's earlier items. */
  repeated: Uint8Array;
  /** [C] 1 where it is the item of the event right before it. */
  self: Uint8Array;
}

export function caseFacts(options: Omit<CaseOptions, 'exclude'>): CaseFacts {
  const history: number[] = [];
  const repeated: number[] = [];
  const self: number[] = [];
  for (const { batch, targets } of evaluationCases({ ...options, exclude: 'none' })) {
    targets.forEach((target, c) => {
      const items = wholeHistory(options.source, batch, c);
      history.push(items.length);
      repeated.push(items.includes(target) ? 1 : 0);
      self.push(items.at(-1) === target ? 1 : 0);
    });
  }
  return {
    history: Int32Array.from(history),
    repeated: Uint8Array.from(repeated),
    self: Uint8Array.from(self),
  };
}

/** Share of the cases where the fact holds. */
export function shareOf(flags: Uint8Array): number {
  return flags.reduce((sum, flag) => sum + flag, 0) / Math.max(1, flags.length);
}
