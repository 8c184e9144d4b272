// Interprets a result and suggests the next step. Whether the model beats the baselines is decided in src/eval; this adds the
// cases in which that question makes no sense.

import { relative } from 'node:path';
import type { EvaluationReport } from '../eval/report.js';
import { type Remedy, type Training, verdict } from '../eval/verdict.js';

export interface Verdict {
  /** Stable for scripts. */
  kind: 'untested' | 'one-item' | 'one-user' | 'all-excluded' | 'nothing-to-gain' | 'behind' | 'ahead';
  /** Sentences, at least one. */
  lines: string[];
  /** The next command. */
  next: string;
}

export interface Judged extends Training {
  run: string;
  /** Undefined if no events were held out. */
  test: EvaluationReport | undefined;
  /** Path of the run's data. */
  store: string;
  epochs: number;
}

export function judge(judged: Judged): Verdict {
  const { run, test } = judged;
  if (!test || test.cases === 0) {
    return {
      kind: 'untested',
      lines: ['nothing was tested: the split holds out no events, so the quality of this model is unknown'],
      next: 'npx turbogr prepare <log> --split leave-one-out --out <store>',
    };
  }
  if (test.items === 1) {
    return {
      kind: 'one-item',
      lines: ['there is only one item, so every ranking is right and the figures mean nothing'],
      next: 'npx turbogr train <log> --item <the column of the items>',
    };
  }
  if (test.users === 1) {
    return {
      kind: 'one-user',
      lines: ['there is only one user, so the figures say nothing about other users'],
      next: 'npx turbogr train <log> --user <the column of the users>',
    };
  }
  if (test.excludedTargets === test.cases) {
    return {
      kind: 'all-excluded',
      lines: [
        'every target is excluded from the ranking, so every figure is 0: users in this log return to the same items',
      ],
      next: `npx turbogr evaluate ${run} --exclude none`,
    };
  }
  const solved = Object.entries(test.metrics).find(
    ([name, { mrr }]) => name !== 'model' && name !== 'model alone' && mrr?.value === 1,
  );
  if (solved) {
    return {
      kind: 'nothing-to-gain',
      lines: [`${solved[0]} ranks every held-out event first, without a model: this log leaves nothing to learn`],
      next: 'npx turbogr train <log> --drop-repeats, if users only repeat items in it',
    };
  }
  const { wins, lines, remedy = 'tune' } = verdict(test, judged);
  const next = wins ? `npx turbogr recommend ${run} --user <id>` : nextTrial(judged, remedy);
  return { kind: wins ? 'ahead' : 'behind', lines, next };
}

/** The command of the remedy, as a new run; manual settings have to be given again. */
function nextTrial({ run, store: folder, epochs }: Judged, remedy: Remedy): string {
  const near = relative('', folder);
  const store = near.startsWith('..') ? folder : near;
  const again = (name: string, setting: string) =>
    `npx turbogr train ${store} --run ${run}-${name} --set ${setting}, with the settings you gave`;
  if (remedy === 'epochs') return again('longer', `epochs=${2 * epochs}`);
  if (remedy === 'refit') return `npx turbogr refit ${run}`;
  if (remedy === 'priors') return again('priors', 'priors=auto');
  if (remedy === 'exclude') return `npx turbogr evaluate ${run} --exclude none`;
  return `npx turbogr tune ${store} --out ${run}-tuned`;
}
