// The elements of the comparison: a row (the paper's figure, and ours or why there is none), a part (rows that are measured
// and saved together), a section (parts under one heading).

import { z } from 'zod';

export const PAPER_ROW = z.strictObject({
  name: z.string(),
  /** As the paper prints it; absent where it reports nothing. */
  paper: z.string().optional(),
  /** What was measured, as text. */
  ours: z.string().optional(),
  /** The figures behind `ours`, machine-readable. */
  figures: z.record(z.string(), z.number()).optional(),
  /** Why there is no measurement. */
  missing: z.string().optional(),
});
export type PaperRow = z.infer<typeof PAPER_ROW>;

export interface SectionOptions {
  /** Minutes instead of hours: fewer steps, smaller batches, one step of the largest models. */
  quick: boolean;
  threads?: number | undefined;
  /** A Python with torch, for the section `peers`. */
  peer?: string | undefined;
}

export interface Part {
  /** Unique in its section. */
  readonly id: string;
  /** The paper's figures, shown until the part is measured. */
  readonly paper?: string | undefined;
  measure(options: SectionOptions): Promise<PaperRow[]>;
}

export interface Section {
  /** Name for `--only`. */
  readonly id: string;
  readonly title: string;
  /** What is compared, in a sentence or two. */
  readonly about: string;
  readonly parts: readonly Part[];
}
