// The part of `report.json` that views read. Infinite margins (one user) are null in JSON.

import { existsSync, readFileSync } from 'node:fs';
import { z } from 'zod';

const ESTIMATE = z.object({ value: z.number(), margin: z.number().nullable() });

const FINAL_REPORT = z.object({
  step: z.number(),
  epoch: z.number(),
  reason: z.string(),
  seconds: z.number(),
  best: z.object({ value: z.number(), step: z.number(), epoch: z.number() }).nullable(),
  metric: z.string(),
  chosenOn: z.string(),
  stillImproving: z.boolean(),
  digest: z.string(),
  seed: z.number(),
  threads: z.number(),
  parameters: z.object({ blockParameters: z.number(), denseParameters: z.number(), tableParameters: z.number() }),
  test: z
    .object({
      part: z.string(),
      fingerprint: z.string(),
      split: z.string(),
      exclude: z.string(),
      users: z.number(),
      items: z.number(),
      cases: z.number(),
      excludedTargets: z.number(),
      repeatedTargets: z.number(),
      selfFirst: z.number(),
      metrics: z.record(z.string(), z.record(z.string(), ESTIMATE)),
      lists: z.object({
        k: z.number(),
        coverage: z.number(),
        popularShare: z.number(),
        popularShareOfTargets: z.number(),
      }),
    })
    .optional(),
  verdict: z.object({ kind: z.string(), lines: z.array(z.string()), next: z.string() }).optional(),
});

export type FinalReport = z.infer<typeof FINAL_REPORT>;
export type TestReport = NonNullable<FinalReport['test']>;

/** Undefined if the run has not ended or the file is not valid. */
export function readFinalReport(path: string): FinalReport | undefined {
  if (!existsSync(path)) return undefined;
  try {
    return FINAL_REPORT.safeParse(JSON.parse(readFileSync(path, 'utf8'))).data;
  } catch {
    return undefined; // being written, or damaged: the view uses the events
  }
}
