// The paper's Table 1: model FLOPs utilisation of its ten models, in both conventions.

import { formatShare } from '../../util/terminal.js';
import { benchStep, paperCase } from '../step.js';
import type { PaperRow, Section } from './row.js';

interface Published {
  model: string;
  millions: number;
  mfu: number;
  linearity: number;
}

const PUBLISHED: readonly Published[] = [
  { model: 'hstu-tiny', millions: 0.17, mfu: 0.43, linearity: 0.38 },
  { model: 'hstu-small', millions: 1.33, mfu: 1.96, linearity: 0.58 },
  { model: 'hstu-medium', millions: 10.52, mfu: 8.0, linearity: 0.7 },
  { model: 'hstu-large', millions: 83.97, mfu: 24.74, linearity: 0.93 },
  { model: 'hstu-long', millions: 83.97, mfu: 34.08, linearity: 0.97 },
  { model: 'fuxi-tiny', millions: 0.41, mfu: 0.88, linearity: 0.35 },
  { model: 'fuxi-small', millions: 3.18, mfu: 3.78, linearity: 0.5 },
  { model: 'fuxi-medium', millions: 25.22, mfu: 16.76, linearity: 0.74 },
  { model: 'fuxi-large', millions: 201.55, mfu: 39.34, linearity: 0.94 },
  { model: 'fuxi-long', millions: 201.55, mfu: 54.71, linearity: 0.97 },
];

/** Above this many million parameters a step takes tens of seconds: the quick form measures few of them. */
const LARGE = 50;

export const mfu: Section = {
  id: 'mfu',
  title: 'Table 1: MFU of the ten models',
  about:
    'Whole training steps with every sequence at the maximum length. "paper" counting: 6Pn + 12n²dL (FuXi 24n²dL), attention not halved for causality; "useful": real, causal work only. Peak: FMA peak measured between the steps of the same run.',
  async measure({ quick, threads }) {
    const rows: PaperRow[] = [];
    for (const { model, millions, mfu: published } of PUBLISHED) {
      const report = await benchStep(paperCase(model), {
        threads,
        ...(quick && { steps: millions > LARGE ? 1 : 3 }),
      });
      rows.push({
        section: 'mfu',
        name: `${model} (${(report.parameters / 1e6).toFixed(2)} M parameters, paper ${millions} M)`,
        paper: `${published} %`,
        ours: `${formatShare(report.mfu_paper)} (useful: ${formatShare(report.mfu)})`,
        figures: {
          mfu: report.mfu,
          mfu_paper: report.mfu_paper,
          step_ms: report.step_ms,
          parameters: report.parameters,
          peak_gflops: report.peak_gflops,
        },
      });
    }
    return rows;
  },
};
