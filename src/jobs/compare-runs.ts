// Two runs on the same test events: how their figures differ, and whether that could be chance.

import { comparePaired, type PairedReport } from '../eval/paired.js';
import type { SavedRanks } from '../eval/rank-file.js';
import { UserError } from '../util/errors.js';
import type { OpenRunOptions } from './open-run.js';
import { runRanks } from './run-ranks.js';

export interface RunComparison extends PairedReport {
  a: string;
  b: string;
  fingerprint: string;
  exclude: SavedRanks['exclude'];
}

/** Compares `b` to `a`: differences are b - a. Runs on different data or rankings are refused. */
export async function compareRuns(a: string, b: string, options: OpenRunOptions = {}): Promise<RunComparison> {
  const [ofA, ofB] = [await runRanks(a, options), await runRanks(b, options)];
  const differences = (['fingerprint', 'exclude', 'targets'] as const)
    .filter(key => ofA[key] !== ofB[key])
    .map(key => `${key} ${shown(ofA[key])} and ${shown(ofB[key])}`);
  if (differences.length > 0) {
    throw new UserError(
      'not-comparable',
      `${a} and ${b} were not tested on the same cases: ${differences.join('; ')}`,
      'Train both on the same store with the same evaluation settings: figures on different splits cannot be compared.',
    );
  }
  const { fingerprint, exclude } = ofA;
  return { a, b, fingerprint, exclude, ...comparePaired(ofA, ofB) };
}

function shown(value: string | number): string {
  return String(value).slice(0, 16);
}
