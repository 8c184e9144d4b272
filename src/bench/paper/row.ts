// The pieces of the comparison: a row (what the paper reports, what this machine measured, or why it could not), a part (rows
// that are measured together, and kept when a run is stopped), a section (parts under one heading).

import { z } from 'zod';

export const PAPER_ROW = z.strictObject({
  name: z.string(),
  /** As the paper prints it; absent where it reports nothing. */
  paper: z.string().optional(),
  /** What was measured, as text. */
  ours: z.string().optional(),
  /** The figures behind `ours`, for machines. */
  figures: z.record(z.string(), z.number()).optional(),
  /** Why there is no measurement. */
  missing: z.string().optional(),
});
export type PaperRow = z.infer<typeof PAPER_ROW>;

export interface SectionOptions {
  /** Minutes instead of hours: fewer steps, shorter batches, the largest models by one step. */
  quick: boolean;
  threads?: number | undefined;
  /** A Python with torch, for the section `peers`. */
  peer?: string | undefined;
}

export interface Part {
  /** Unique in its section. */
  readonly id: string;
  /** What the paper reports, for the page while the part is not measured. */
  readonly paper?: string | undefined;
  measure(options: SectionOptions): Promise<PaperRow[]>;
}

export interface Section {
  /** Name for `--only`. */
  readonly id: string;
  readonly title: string;
  /** What is compared with what, in a sentence or two. */
  readonly about: string;
  readonly parts: readonly Part[];
}
