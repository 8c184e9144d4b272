// The cost of negatives, as measured by `turbogr bench negatives`, next to the paper's figures.

import { benchNegatives, type NegativesPart } from '../negatives/negatives.js';
import type { PaperRow, Section, SectionOptions } from './row.js';

const PARTS: readonly NegativesPart[] = ['memory', 'steps', 'full'];
const SIZE = { d: 256, blocks: 2, tokens: 8192, items: 200_000, catalogue: 1_000_000, tableRows: 32_000_000 };

export const negatives: Section = {
  id: 'negatives',
  title: 'Negatives: memory and time',
  about:
    'HSTU of width 256 and 2 blocks, 8,192 tokens, 200,000 items; memory at width 1,024. Rows of negatives are read segment by segment inside the loss, so the tensor of all their rows is never materialised; the paper keeps it in host memory and transfers it in segments.',
  parts: PARTS.map(part => ({ id: part, measure: options => measured(part, options) })),
};

async function measured(part: NegativesPart, { quick, threads }: SectionOptions): Promise<PaperRow[]> {
  const rows = await benchNegatives(
    {
      ...SIZE,
      ...(quick && { tokens: 4096, catalogue: 100_000 }),
      steps: quick ? 2 : 5,
      threads,
    },
    [part],
  );
  return rows.map(({ name, value, unit, paper }) => ({
    name,
    ...(paper !== undefined && { paper }),
    ours: `${value.toFixed(2)} ${unit}`,
    figures: { value },
  }));
}
