// The paper's Table 1: model FLOPs utilisation of its ten models, in both conventions.

import { formatCount, formatShare } from '../../util/terminal.js';
import { benchStep, paperCase } from '../step.js';
import type { PaperRow, Section, SectionOptions } from './row.js';

interface Published {
  model: string;
  /** M parameters. */
  millions: number;
  /** TFLOP per device and step; samples per second of all devices. */
  tflop: number;
  samples: number;
  /** %. */
  mfu: number;
}

const PUBLISHED: readonly Published[] = [
  { model: 'hstu-tiny', millions: 0.17, tflop: 0.13, samples: 3475, mfu: 0.43 },
  { model: 'hstu-small', millions: 1.33, tflop: 0.59, samples: 3509, mfu: 1.96 },
  { model: 'hstu-medium', millions: 10.52, tflop: 1.9, samples: 2896, mfu: 8.0 },
  { model: 'hstu-large', millions: 83.97, tflop: 4.33, samples: 1616.83, mfu: 24.74 },
  { model: 'hstu-long', millions: 83.97, tflop: 7.15, samples: 770.79, mfu: 34.08 },
  { model: 'fuxi-tiny', millions: 0.41, tflop: 0.27, samples: 3441, mfu: 0.88 },
  { model: 'fuxi-small', millions: 3.18, tflop: 1.18, samples: 3218, mfu: 3.78 },
  { model: 'fuxi-medium', millions: 25.22, tflop: 3.13, samples: 2812, mfu: 16.76 },
  { model: 'fuxi-large', millions: 201.55, tflop: 8.25, samples: 1156.26, mfu: 39.34 },
  { model: 'fuxi-long', millions: 201.55, tflop: 11.54, samples: 574.39, mfu: 54.71 },
];

/** Million parameters above which the quick form uses one sequence, and above which one step. */
const [MEDIUM, LARGE] = [5, 50];
const QUICK_STEPS = 3;

export const mfu: Section = {
  id: 'mfu',
  title: 'Table 1: MFU of the ten models',
  about:
    'Whole training steps with every sequence at the maximum length: MFU, sequences per second, TFLOP of a step. MFU as counted by the paper: 6Pn + 12n²dL (FuXi 24n²dL), attention not halved for causality; useful: real, causal work only. Because the paper counts twice the necessary attention, its figure can exceed 100 %. FLOPs are those of the definition: the time channel of FuXi computes earlier blocks as a series, with fewer products than are counted. Peak: FMA peak with the instructions that the kernels use (AVX-512 where the CPU has it, else AVX2), measured between the steps. The paper counts sequences per second of 32 to 128 devices. Linearity is in a separate section.',
  parts: PUBLISHED.map(published => ({
    id: published.model,
    paper: paperText(published),
    measure: async options => [await measured(published, options)],
  })),
};

function paperText({ mfu: share, samples, tflop }: Published): string {
  return `${share} %, ${formatCount(samples)}/s, ${tflop} TFLOP`;
}

async function measured(published: Published, { quick, threads }: SectionOptions): Promise<PaperRow> {
  const { model, millions } = published;
  const usual = paperCase(model);
  const size = quick && millions > MEDIUM ? { ...usual, tokens: usual.length! } : usual;
  const report = await benchStep(size, { threads, ...(quick && { steps: millions > LARGE ? 1 : QUICK_STEPS }) });
  const perSecond = (1e3 * report.sequences) / report.step_ms;
  const tflop = (report.mfu_paper * report.peak_gflops * report.step_ms) / 1e6;
  return {
    name: `${model} (${(report.parameters / 1e6).toFixed(2)} M parameters, paper ${millions} M)`,
    paper: paperText(published),
    ours: `${formatShare(report.mfu_paper)} (useful ${formatShare(report.mfu)}), ${perSecond.toPrecision(3)}/s, ${tflop.toPrecision(3)} TFLOP`,
    figures: {
      paper: published.mfu / 100,
      mfu: report.mfu,
      mfu_paper: report.mfu_paper,
      step_ms: report.step_ms,
      steps: report.steps,
      sequences_per_s: perSecond,
      tflop,
      parameters: report.parameters,
      peak_gflops: report.peak_gflops,
    },
  };
}
