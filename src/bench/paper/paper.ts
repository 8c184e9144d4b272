// `turbogr bench paper`: the paper's tables next to ours. Measured parts are saved one by one, so that an interrupted run
// resumes where it stopped; `--only` selects sections.

import { cpus } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Command, InvalidArgumentError } from '@commander-js/extra-typings';
import { Device } from '../../native/device.js';
import { makeFolder, writeFileAtomic } from '../../util/atomic-file.js';
import { countNumber } from '../../util/number-flags.js';
import { formatSeconds, table } from '../../util/terminal.js';
import { FmaPeak, median } from '../measuring.js';
import { ladderPicture, mfuPicture } from './pictures.js';
import { markdown } from './render.js';
import { findPart, keepPart, type Machine, openReport, type PaperReport } from './report.js';
import type { Section, SectionOptions } from './row.js';
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
    .description("the paper's tables next to ours, measured on this machine; resumes after an interruption")
    .option('--quick', 'minutes instead of hours; full measurements that exist are kept')
    .option(
      '--only <sections>',
      `sections, separated by commas: ${SECTIONS.map(({ id }) => id).join(', ')}`,
      sectionList,
    )
    .option('--out <folder>', 'output folder for paper.md, paper.json and the pictures', 'runs/bench-paper')
    .option('--fresh', 'measure these sections again, even if they were measured before')
    .option('--peer <python>', 'a Python with torch, such as python3, to compare steps with PyTorch')
    .option('--threads <count>', 'threads (default: all cores)', countNumber)
    .option('--json', 'print one JSON object')
    .action(async ({ quick = false, only, out, fresh = false, threads, peer, json = false }) => {
      makeFolder(out);
      const machine = machineOf(threads);
      const report = fresh && !only ? { machine, parts: [] } : openReport(join(out, 'paper.json'), machine);
      const chosen = SECTIONS.filter(({ id }) => !only || only.includes(id));
      await measureAll(chosen, { quick, threads, peer }, { report, out, fresh, progress: !json });
      process.stdout.write(json ? `${JSON.stringify(report)}\n` : `${screen(report)}\n\nwritten: ${out}/paper.md\n`);
    });
}

interface Keeping {
  report: PaperReport;
  out: string;
  fresh: boolean;
  progress: boolean;
}

/** Measures missing parts one by one; files are complete after each. */
async function measureAll(sections: readonly Section[], options: SectionOptions, keeping: Keeping): Promise<void> {
  const { report, out, fresh, progress } = keeping;
  const { quick } = options;
  const wanted = sections.flatMap(section => section.parts.map(part => ({ section: section.id, part })));
  const open = wanted.filter(({ section, part }) => fresh || !findPart(report, { section, part: part.id, quick }));
  for (const [at, { section, part }] of open.entries()) {
    if (progress) process.stderr.write(`${at + 1} of ${open.length}: ${section}, ${part.id}\n`);
    const others = await busyShare();
    const peak_gflops = await fmaPeak(options.threads);
    const start = performance.now();
    const rows = await part.measure(options);
    const seconds = (performance.now() - start) / 1000;
    if (progress) process.stderr.write(`  ${formatSeconds(seconds)}\n`);
    const measured = { section, part: part.id, quick, seconds, peak_gflops, others, rows };
    keepPart(join(out, 'paper.json'), report, measured);
    writePages(out, report);
  }
  if (open.length === 0) writePages(out, report);
}

function writePages(out: string, report: PaperReport): void {
  writeFileAtomic(join(out, 'paper.md'), markdown(report));
  writeFileAtomic(join(out, 'paper.svg'), mfuPicture(report));
  writeFileAtomic(join(out, 'paper-ladder.svg'), ladderPicture(report));
}

function machineOf(threads: number | undefined): Machine {
  using device = Device.open(threads === undefined ? {} : { threads });
  const { threads: count, isa } = device.stats();
  return { cpu: cpus()[0]?.model ?? 'unknown CPU', threads: count, isa };
}

/** GFLOP/s of all threads. */
async function fmaPeak(threads: number | undefined): Promise<number> {
  using device = Device.open(threads === undefined ? {} : { threads });
  const peak = new FmaPeak(device, 0.05);
  for (let i = 0; i < 3; i++) await peak.sample();
  return median(peak.samples) / 1e9;
}

/** Share of the cores that is busy while this process is idle. */
async function busyShare(): Promise<number> {
  const sums = () => {
    const times = cpus().map(({ times: { user, nice, sys, idle, irq } }) => ({
      idle,
      all: user + nice + sys + idle + irq,
    }));
    return { idle: times.reduce((sum, { idle }) => sum + idle, 0), all: times.reduce((sum, { all }) => sum + all, 0) };
  };
  const before = sums();
  await sleep(500);
  const after = sums();
  return after.all === before.all ? 0 : 1 - (after.idle - before.idle) / (after.all - before.all);
}

function screen({ parts }: PaperReport): string {
  return table(
    ['', 'paper', 'here'],
    SECTIONS.flatMap(({ id }) => parts.filter(({ section }) => section === id))
      .flatMap(({ rows }) => rows)
      .map(({ name, paper = '', ours, missing }) => [name, paper, ours ?? `not measured: ${missing}`]),
  );
}
