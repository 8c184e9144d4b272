// The ranks of a run's test cases: saved when the run is tested, recomputed on demand if missing.

import { existsSync, readFileSync } from 'node:fs';
import { z } from 'zod';
import { readRanks, type SavedRanks, writeRanks } from '../eval/rank-file.js';
import { RunFolder } from '../train/run-folder.js';
import { type Evaluated, evaluateModel } from './evaluate.js';
import { OpenRun, type OpenRunOptions } from './open-run.js';

const TESTED = z.object({ digest: z.string(), test: z.object({}).optional() });

function describeRanks(run: RunFolder, { report, ranks }: Evaluated, digest: string): SavedRanks {
  const { fingerprint, exclude } = report;
  return { ...ranks, digest, fingerprint, exclude, targets: run.description.config.evaluation.targets };
}

export function saveRunRanks(run: RunFolder, evaluated: Evaluated, digest: string): void {
  writeRanks(run.ranks, describeRanks(run, evaluated, digest));
}

/** From the run's folder, or by testing the run if the file is missing or has other weights than the report. */
export async function runRanks(path: string, options: OpenRunOptions = {}): Promise<SavedRanks> {
  const run = RunFolder.open(path);
  if (existsSync(run.ranks) && existsSync(run.report)) {
    const saved = readRanks(run.ranks);
    const report = TESTED.safeParse(JSON.parse(readFileSync(run.report, 'utf8')));
    if (report.success && report.data.test && report.data.digest === saved.digest) return saved;
  }
  using opened = new OpenRun(path, options);
  const { model, source, config, priors } = opened;
  const evaluated = await evaluateModel({ model, source, config, part: 'test', ...(priors && { priors }) });
  return describeRanks(run, evaluated, await model.digest());
}
