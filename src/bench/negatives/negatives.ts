// `turbogr bench negatives`: memory, time and look-ups of negatives (plain, shared, pooled, FP16), next to the TurboGR paper's
// figures; full softmax over a large catalogue; a table of many million rows.

import { Command, Option } from '@commander-js/extra-typings';
import { countNumber } from '../../util/number-flags.js';
import { table } from '../../util/terminal.js';
import { fullSoftmaxRows } from './full-softmax-rows.js';
import { memoryRows } from './memory-rows.js';
import type { NegativesRow, NegativesSize } from './row.js';
import { stepRows } from './step-rows.js';
import { tableRows } from './table-rows.js';

const PARTS = { memory: memoryRows, steps: stepRows, full: fullSoftmaxRows, table: tableRows };
export type NegativesPart = keyof typeof PARTS;
const ALL: readonly NegativesPart[] = ['memory', 'steps', 'full', 'table'];
const QUICK = { tokens: 2048, items: 50_000, steps: 2, catalogue: 50_000, tableRows: 1_000_000 };

export function benchNegativesCommand() {
  return new Command('negatives')
    .description('memory, time and look-ups of negatives, plain, shared, pooled, in FP16; full softmax; a large table')
    .addOption(new Option('--only <part>', 'one part').choices(ALL))
    .option('--d <width>', 'model width of the steps', countNumber, 256)
    .option('--blocks <count>', 'HSTU blocks of the steps', countNumber, 2)
    .option('--tokens <count>', 'tokens of a step', countNumber, 8192)
    .option('--items <count>', 'items of the steps', countNumber, 200_000)
    .option('--steps <count>', 'rounds per setting, and steps on the large table', countNumber, 5)
    .option('--catalogue <count>', 'items of the full softmax', countNumber, 1_000_000)
    .option('--table-rows <count>', 'rows of the FP16 table', countNumber, 32_000_000)
    .option('--threads <count>', 'number of threads (default: all cores)', countNumber)
    .option('--quick', 'small sizes: a smoke test, not a measurement')
    .option('--json', 'one JSON object')
    .action(async ({ json, quick, only, ...given }) => {
      const size = quick ? { ...given, ...QUICK } : given;
      const rows = await benchNegatives(size, only === undefined ? ALL : [only]);
      process.stdout.write(`${json ? JSON.stringify({ ...size, rows }) : describe(rows)}\n`);
    });
}

/** Parts run one after the other, each on its own device. */
export async function benchNegatives(size: NegativesSize, parts: readonly NegativesPart[]): Promise<NegativesRow[]> {
  const rows: NegativesRow[] = [];
  for (const part of parts) rows.push(...(await PARTS[part](size)));
  return rows;
}

function describe(rows: readonly NegativesRow[]): string {
  return table(
    ['', 'value', 'unit', 'paper'],
    rows.map(({ name, value, unit, paper = '' }) => [name, value.toFixed(2), unit, paper]),
  );
}
