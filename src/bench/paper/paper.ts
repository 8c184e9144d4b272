// `turbogr bench paper`: the paper's tables with ours beside them. Finished sections are kept in a file, so that a run that
// was stopped goes on where it was; `--only` measures some of them.

import { existsSync, readFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { Command, InvalidArgumentError } from '@commander-js/extra-typings';
import { Device } from '../../native/device.js';
import { makeFolder, writeFileAtomic } from '../../util/atomic-file.js';
import { countNumber } from '../../util/number-flags.js';
import { table } from '../../util/terminal.js';
import { FmaPeak, median } from '../measuring.js';
import { markdown, mfuPicture, PAPER_REPORT, type PaperReport } from './render.js';
import type { PaperRow } from './row.js';
import { SECTIONS } from './sections.js';

function sectionList(text: string): string[] {
  const ids = text.split(',');
  const unknown = ids.find(id => SECTIONS.every(section => section.id !== id));
  if (unknown !== undefined) {
    throw new InvalidArgumentError(`There is no section "${unknown}": ${SECTIONS.map(({ id }) => id).join(', ')}.`);
  }
  return ids;
}

export function benchPaperCommand() {
  return new Command('paper')
    .description("the paper's tables with ours beside them, measured here")
    .option('--quick', 'minutes instead of hours')
    .option('--only <sections>', `some of ${SECTIONS.map(({ id }) => id).join(', ')}; separated by commas`, sectionList)
    .option('--out <folder>', 'where paper.md, paper.json and paper.svg go', 'runs/bench-paper')
    .option('--fresh', 'measure again what an earlier run has measured')
    .option('--peer <python>', 'a Python with torch, such as python3: its steps beside ours')
    .option('--threads <count>', 'threads (default: all cores)', countNumber)
    .option('--json', 'print one JSON object')
    .action(async ({ quick = false, only, out, fresh = false, threads, peer, json = false }) => {
      makeFolder(out);
      const file = join(out, 'paper.json');
      const known = fresh ? undefined : readReport(file, quick);
      const report: PaperReport = { machine: await describeMachine(threads), quick, rows: known?.rows ?? [] };
      for (const section of SECTIONS) {
        if (only && !only.includes(section.id)) continue;
        if (!report.rows.some(row => row.section === section.id)) {
          if (!json) process.stderr.write(`measuring: ${section.title}\n`);
          report.rows.push(...(await section.measure({ quick, threads, peer })));
          writeFileAtomic(file, `${JSON.stringify(report, null, 1)}\n`);
        }
      }
      writeFileAtomic(join(out, 'paper.md'), markdown(report));
      writeFileAtomic(join(out, 'paper.svg'), mfuPicture(report.rows));
      process.stdout.write(
        json ? `${JSON.stringify(report)}\n` : `${screen(report.rows)}\n\nwritten: ${out}/paper.md\n`,
      );
    });
}

/** What an earlier run of the same form has measured. */
function readReport(file: string, quick: boolean): PaperReport | undefined {
  if (!existsSync(file)) return undefined;
  const found = PAPER_REPORT.safeParse(JSON.parse(readFileSync(file, 'utf8')));
  return found.success && found.data.quick === quick ? found.data : undefined;
}

async function describeMachine(threads: number | undefined): Promise<PaperReport['machine']> {
  using device = Device.open(threads === undefined ? {} : { threads });
  const peak = new FmaPeak(device, 0.05);
  for (let i = 0; i < 5; i++) await peak.sample();
  const { threads: count, isa } = device.stats();
  return {
    threads: count,
    isa,
    peak_gflops: median(peak.samples) / 1e9,
    cpu: cpus()[0]?.model ?? 'unknown CPU',
    load: loadavg()[0]!,
  };
}

function screen(rows: readonly PaperRow[]): string {
  return table(
    ['', 'paper', 'here'],
    rows.map(({ name, paper = '', ours, missing }) => [name, paper, ours ?? `not measured: ${missing}`]),
  );
}
