// Linearity of Table 1, and how step time divides on several ranks: two ranks on this machine (`turbogr bench scale`).

import { totalmem } from 'node:os';
import { UserError } from '../../util/errors.js';
import { formatShare } from '../../util/terminal.js';
import { benchScale, type ScaleOptions, type ScaleRow } from '../scale.js';
import { paperCase, type StepCase } from '../step.js';
import type { PaperRow, Part, Section } from './row.js';

interface Published {
  model: string;
  linearity: number;
  /** Compute / communication / exposed / free. */
  parts?: string;
}

const PUBLISHED: readonly Published[] = [
  { model: 'hstu-tiny', linearity: 0.38 },
  { model: 'hstu-small', linearity: 0.58 },
  { model: 'hstu-medium', linearity: 0.7 },
  { model: 'hstu-large', linearity: 0.93 },
  { model: 'hstu-long', linearity: 0.97 },
  { model: 'fuxi-tiny', linearity: 0.35 },
  { model: 'fuxi-small', linearity: 0.5 },
  { model: 'fuxi-medium', linearity: 0.74 },
  { model: 'fuxi-large', linearity: 0.94, parts: '94.25 / 46.89 / 5.57 / 0.18 %' },
  { model: 'fuxi-long', linearity: 0.97, parts: '94.29 / 24.04 / 5.39 / 0.33 %' },
];

const ROWS = 100_000;
const QUICK_MODELS = new Set(['hstu-tiny', 'hstu-small', 'fuxi-tiny', 'fuxi-small']);
const QUICK: ScaleOptions = { rows: ROWS, turns: 3, turnSeconds: 1.5, stepSeconds: 1 };
/** A step of these takes tens of seconds, and a table of a million rows 4 GB. */
const LARGE: ScaleOptions = { rows: ROWS, turns: 2 };
const LARGE_WIDTH = 1024;
/** Share of the machine's memory that two ranks may use. */
const SHARE = 0.85;

export const linearity: Section = {
  id: 'linearity',
  title: 'Linearity, and where the time of a step goes',
  about:
    'The paper: 32 to 128 devices. Here: two single-threaded ranks on this machine compared with one, with the same tokens per rank; in brackets, two copies without communication in the same run, the limit of the machine. Computing: a kernel was running; communication: an exchange was running, including waiting for the other rank; exposed: an exchange but no kernel was running; free: neither.',
  parts: PUBLISHED.map(partOf),
};

function partOf({ model, linearity: published, parts }: Published): Part {
  return {
    id: model,
    paper: String(published),
    async measure({ quick }) {
      const found = await scaled(model, quick);
      if (typeof found === 'string') return rowsOf({ missing: found }, { missing: found });
      const { efficiency, limit, compute_ratio, comm, exposed_comm, wait, free } = found;
      const figures = { efficiency, limit, compute_ratio, comm, exposed_comm, wait, free };
      const shares = [compute_ratio, comm, exposed_comm, free].map(share => (100 * share).toFixed(2)).join(' / ');
      return rowsOf(
        { ours: `${efficiency.toFixed(2)} (limit ${limit.toFixed(2)})`, figures },
        { ours: `${shares} %, waiting for the slower rank ${formatShare(wait)}` },
      );
    },
  };

  type Found = Pick<PaperRow, 'ours' | 'figures' | 'missing'>;
  function rowsOf(line: Found, time: Found): PaperRow[] {
    const name = `${model}: computing / communication / exposed / free`;
    return [
      { name: `${model}: linearity`, paper: String(published), ...line },
      { name, ...(parts !== undefined && { paper: parts }), ...time },
    ];
  }
}

/** The measurement, or why there is none. */
async function scaled(model: string, quick: boolean): Promise<ScaleRow | string> {
  if (quick && !QUICK_MODELS.has(model)) return 'left out by --quick';
  const [needed, there] = [bytesOf(paperCase(model)) / 2 ** 30, totalmem() / 2 ** 30];
  if (needed > SHARE * there) {
    return `two ranks need about ${needed.toFixed(0)} GB of memory, this machine has ${there.toFixed(0)}`;
  }
  try {
    return (await benchScale([model], quick ? QUICK : paperCase(model).d >= LARGE_WIDTH ? LARGE : {}))[0]!;
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    return error.message.split('\n', 1)[0]!;
  }
}

/** Approximate memory of two ranks, each with a separate and a joint model: weights, gradients, moments, table, activations. */
function bytesOf({ kind, d, blocks, length = 0 }: StepCase): number {
  const parameters = (kind === 'fuxi' ? 12 : 5) * d * d * blocks;
  return 4 * (16 * parameters + 4 * ROWS * d) + 2 * 4 * 16 * length * d * blocks;
}
