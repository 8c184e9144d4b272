// The measured parts so far, each with its form (quick or whole) and the load of the machine. Written after every part, so
// that an interrupted run resumes with the next one.

import { existsSync, readFileSync } from 'node:fs';
import { z } from 'zod';
import { writeFileAtomic } from '../../util/atomic-file.js';
import { UserError } from '../../util/errors.js';
import { PAPER_ROW } from './row.js';

const MACHINE = z.strictObject({ cpu: z.string(), threads: z.number(), isa: z.string() });
export type Machine = z.infer<typeof MACHINE>;

const MEASURED_PART = z.strictObject({
  section: z.string(),
  part: z.string(),
  quick: z.boolean(),
  seconds: z.number(),
  /** Just before the part: FMA peak, and the share of the cores used by other processes. */
  peak_gflops: z.number(),
  others: z.number(),
  rows: z.array(PAPER_ROW),
});
export type MeasuredPart = z.infer<typeof MEASURED_PART>;

export const PAPER_REPORT = z.strictObject({ machine: MACHINE, parts: z.array(MEASURED_PART) });
export type PaperReport = z.infer<typeof PAPER_REPORT>;

/** Reads the report of this machine, if any; figures of two machines are never mixed in one table. */
export function openReport(file: string, machine: Machine): PaperReport {
  if (!existsSync(file)) return { machine, parts: [] };
  const found = PAPER_REPORT.safeParse(JSON.parse(readFileSync(file, 'utf8')));
  if (!found.success) {
    throw new UserError(
      'bad-report',
      `${file} is not a report of this version`,
      'Choose another --out, or measure everything again with --fresh.',
    );
  }
  const { cpu, threads, isa } = found.data.machine;
  if (cpu !== machine.cpu || threads !== machine.threads || isa !== machine.isa) {
    const message = `${file} was measured on another machine: ${cpu}, ${threads} threads (${isa})`;
    throw new UserError('other-machine', message, 'Choose another --out, or measure everything again with --fresh.');
  }
  return found.data;
}

/**
 * A part in the requested form; the whole form also serves as the quick one. A part that could not be measured counts as
 * missing: the obstacle may be gone.
 */
export function findPart(
  report: PaperReport,
  { section, part, quick }: Pick<MeasuredPart, 'section' | 'part' | 'quick'>,
) {
  return report.parts
    .filter(({ rows }) => rows.some(({ ours }) => ours !== undefined))
    .find(known => known.section === section && known.part === part && (quick || !known.quick));
}

/** Replaces a part and writes the report. */
export function keepPart(file: string, report: PaperReport, measured: MeasuredPart): void {
  const { section, part } = measured;
  const at = report.parts.findIndex(known => known.section === section && known.part === part);
  if (at === -1) report.parts.push(measured);
  else report.parts[at] = measured;
  writeFileAtomic(file, `${JSON.stringify(report, null, 1)}\n`);
}
