// The ladder: from the padded baseline to the full system, one switch at a time, as time per real token of a whole step.

import { formatCount } from '../../util/terminal.js';
import { benchStep, type StepCase } from '../step.js';
import type { PaperRow, Section } from './row.js';

const MODEL: StepCase = {
  kind: 'hstu',
  d: 256,
  blocks: 4,
  heads: 8,
  tokens: 8192,
  items: 10_000,
  table: 'adamw',
};

export const ladder: Section = {
  id: 'ladder',
  title: 'The ladder: one switch at a time',
  about:
    'HSTU of width 256 and 4 blocks on lognormal lengths of mean 200: microseconds per real token of a whole step, and the gain over the rung before.',
  async measure({ quick, threads }) {
    const options = { threads, ...(quick && { steps: 3 }) };
    const rungs: { name: string; case: StepCase }[] = [
      { name: 'padded to the longest sequence, every table row updated', case: { ...MODEL, padded: true } },
      { name: 'jagged: no padding anywhere', case: MODEL },
      { name: 'only touched table rows updated', case: { ...MODEL, table: 'lazy-adam' } },
    ];
    const rows: PaperRow[] = [];
    let before: number | undefined;
    for (const { name, case: rung } of rungs) {
      const report = await benchStep(rung, options);
      const micros = (report.step_ms * 1e3) / report.real_tokens;
      const gain = before === undefined ? '' : ` (${(before / micros).toFixed(2)}x)`;
      rows.push({
        section: 'ladder',
        name,
        ours: `${micros.toFixed(1)} us per token${gain}, ${formatCount(report.real_tokens)} real tokens`,
        figures: { us_per_token: micros },
      });
      before = micros;
    }
    rows.push({
      section: 'ladder',
      name: 'unfused attention in a whole step',
      missing: 'the models have no unfused form; section "attention" compares the op alone',
    });
    return rows;
  },
};
