// What a result means, and what to do next: a page of figures does not say by itself that nothing could have been found.
// Whether the model beats the baselines is eval's to say; here are the cases in which that question makes no sense.

import type { EvaluationReport } from '../eval/report.js';
import { verdict } from '../eval/verdict.js';

export interface Verdict {
  /** Stable for scripts. */
  kind: 'untested' | 'one-item' | 'one-user' | 'all-excluded' | 'behind' | 'ahead';
  /** Sentences, at least one. */
  lines: string[];
  /** The next command. */
  next: string;
}

export interface Judged {
  run: string;
  /** Undefined when no events were held out. */
  test: EvaluationReport | undefined;
  /** The last validation of the run was its best. */
  stillImproving?: boolean;
}

export function judge({ run, test, stillImproving = false }: Judged): Verdict {
  if (!test || test.cases === 0) {
    return {
      kind: 'untested',
      lines: ['nothing was tested: the split holds out no events, so nobody knows how good this model is'],
      next: 'npx turbogr prepare <log> --split leave-one-out --out <store>',
    };
  }
  if (test.items === 1) {
    return {
      kind: 'one-item',
      lines: ['there is one item, so every ranking is right and the figures mean nothing'],
      next: 'npx turbogr train <log> --item <the column of the items>',
    };
  }
  if (test.users === 1) {
    return {
      kind: 'one-user',
      lines: ['there is one user, so the figures say nothing about anybody else'],
      next: 'npx turbogr train <log> --user <the column of the users>',
    };
  }
  if (test.excludedTargets === test.cases) {
    return {
      kind: 'all-excluded',
      lines: [
        'every event to be found is left out of the ranking, so every figure is 0: people in this log come back to the same items',
      ],
      next: `npx turbogr evaluate ${run} --exclude none`,
    };
  }
  const { wins, lines } = verdict(test, { stillImproving });
  const next = wins
    ? `npx turbogr recommend ${run} --user <id>`
    : 'npx turbogr train <data> --run <new folder> --set <key=value>, with the remedy above';
  return { kind: wins ? 'ahead' : 'behind', lines, next };
}
