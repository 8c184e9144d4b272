// `turbogr plan`: predicts training on a cluster described by a few numbers, and chooses the layout.

import { availableParallelism, cpus, totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { Command } from '@commander-js/extra-typings';
import { LINK_BITS, measureCalibration, type MeasuredCase, measureHeldOut } from '../bench/calibrate.js';
import { median } from '../bench/measuring.js';
import { configOf, lengthsOf, type RankCase } from '../bench/ranks/rank-case.js';
import { resolveConfig, resolveForLog } from '../config/resolve.js';
import { logStatistics } from '../data/log-statistics.js';
import { SequenceStore } from '../data/store/sequence-store.js';
import { choose } from '../plan/choose.js';
import { atPeak, type Costs, readCosts } from '../plan/costs.js';
import { fitCrowding } from '../plan/crowding.js';
import { fitCosts } from '../plan/fit.js';
import { logShapeOf } from '../plan/log-shape.js';
import { type Cluster, type Layout, predict } from '../plan/predict.js';
import { describePlan, planRows } from '../plan/table.js';
import { type Workload, workloadOf } from '../plan/workload.js';
import { makeFolder, writeFileAtomic } from '../util/atomic-file.js';
import { cacheFolder } from '../util/cache-folder.js';
import { UserError } from '../util/errors.js';
import { countNumber, positiveNumber } from '../util/number-flags.js';
import { formatShare, table } from '../util/terminal.js';
import { readConfigFlags, withConfigFlags } from './config-flags.js';

export function planCommand() {
  return withConfigFlags(new Command('plan').argument('[store]', 'a store made by `turbogr prepare`'))
    .description('step time, memory and traffic on a cluster, and the layout to train with')
    .option('--items <count>', 'items of the catalogue, without a store', countNumber)
    .option('--length <events>', 'mean length of a training window, without a store', countNumber)
    .option('--hosts <count>', 'hosts of the cluster', countNumber, 1)
    .option('--cores <count>', 'cores per host (default: as this one)', countNumber)
    .option('--ranks-per-host <count>', 'ranks per host (default: one per core)', countNumber)
    .option('--gbit <rate>', "rate of a host's link in Gbit/s", positiveNumber, 10)
    .option('--memory <gb>', 'memory per host in GB (default: as this one)', positiveNumber)
    .option('--lanes-per-rank <count>', 'lanes per rank and step', countNumber, 1)
    .option('--costs <file>', 'cost constants of the machine (default: the last calibration)')
    .option('--calibrate', 'measure and save the cost constants of this machine')
    .option('--check', 'measure held-out cases and compare the predictions with them')
    .option('--seconds <time>', 'seconds to measure each case', positiveNumber, 3)
    .option('--json', 'print JSON')
    .action(async (store, flags) => {
      const path = flags.costs ?? join(cacheFolder(), 'costs.json');
      if (flags.calibrate) await calibrate(path, flags.seconds);
      if (flags.check) return await check(readCosts(path), flags.seconds, flags.json ?? false);
      if (flags.calibrate && store === undefined && flags.items === undefined) return;
      const work = await readWorkload(store, flags, await readConfigFlags(flags));
      const cores = flags.cores ?? availableParallelism();
      const cluster: Cluster = {
        hosts: flags.hosts,
        coresPerHost: cores,
        ranksPerHost: flags.ranksPerHost ?? cores,
        bitsPerSecond: flags.gbit * 1e9,
        memoryPerHost: flags.memory === undefined ? totalmem() : flags.memory * 1e9,
      };
      const input = { costs: readCosts(path), work, cluster, lanesPerRank: flags.lanesPerRank };
      const chosen = choose(input);
      const rows = planRows(input);
      process.stdout.write(
        flags.json
          ? `${JSON.stringify({ machine: input.costs.machine, simulated: true, chosen, rows })}\n`
          : `${describePlan(input, chosen, rows)}\n`,
      );
    });
}

async function readWorkload(
  store: string | undefined,
  { items, length }: { items?: number | undefined; length?: number | undefined },
  settings: Awaited<ReturnType<typeof readConfigFlags>>,
): Promise<Workload> {
  if (store !== undefined) {
    const source = SequenceStore.open(store);
    const { config } = resolveForLog(logStatistics(source), ...settings);
    return workloadOf(config, logShapeOf(source, config));
  }
  if (items === undefined) {
    const remedy = 'Give a store, or --items and --length: npx turbogr plan --items 1000000 --length 200';
    throw new UserError('nothing-to-plan', 'plan needs a store, or the size of a catalogue', remedy);
  }
  const config = resolveConfig(...settings);
  return workloadOf(config, { items, lengths: [length ?? config.model.maxLength] });
}

const tell = (line: string) => void process.stderr.write(`${line}\n`);

function workOf(size: RankCase): Workload {
  return workloadOf(configOf(size), { items: size.rows, lengths: lengthsOf(size) });
}

async function calibrate(path: string, seconds: number): Promise<void> {
  const { lanes, together, two, four, link } = await measureCalibration(seconds, tell);
  const cores = availableParallelism();
  const peak = median(lanes.map(one => one.peak));
  // Normalised to one peak.
  const evened = ({ size, ranks, seconds: spent, peak: then }: MeasuredCase) => {
    return { work: workOf(size), ranks, seconds: (spent * then) / peak };
  };
  const alone = { hosts: 1, coresPerHost: 1, ranksPerHost: 1, bitsPerSecond: LINK_BITS, memoryPerHost: totalmem() };
  const fitted = fitCosts({
    machine: `${cpus()[0]?.model.trim() ?? 'unknown'}, ${cores} cores`,
    peak,
    cores,
    lanes: lanes.map(evened),
    two,
    four,
    link: link && { ...link, bitsPerSecond: LINK_BITS },
  });
  const crowding = fitCrowding(fitted, { ...alone, coresPerHost: cores }, together.map(evened));
  const costs = { ...fitted, crowding };
  makeFolder(dirname(path));
  writeFileAtomic(path, `${JSON.stringify(costs, null, 2)}\n`);
  tell(`${path} holds the constants of this machine`);
  printChecked(
    lanes.map(measured => ({ measured, predicted: predictCase(costs, measured, alone) })),
    'fitted',
  );
}

/** For the peak measured next to the case. */
function predictCase(costs: Costs, { size, ranks, nodes, peak }: MeasuredCase, cluster: Cluster): number {
  // Default: one group per node.
  const layout: Layout = { ranks, groupSize: ranks / nodes, lanesPerRank: 1, staleness: 0 };
  return predict(atPeak(costs, peak), workOf(size), cluster, layout).stepSeconds;
}

async function check(costs: Costs, seconds: number, json: boolean): Promise<void> {
  const measured = await measureHeldOut(seconds, tell);
  const rows = measured.map(one => {
    const cluster: Cluster = {
      hosts: one.nodes,
      coresPerHost: availableParallelism() / one.nodes,
      ranksPerHost: one.ranks / one.nodes,
      bitsPerSecond: LINK_BITS,
      memoryPerHost: totalmem() / one.nodes,
    };
    return { measured: one, predicted: predictCase(costs, one, cluster) };
  });
  if (!json) return printChecked(rows, 'held out');
  const flat = rows.map(({ measured: { size, ranks, nodes, seconds: spent, peak }, predicted }) => ({
    d: size.d,
    ranks,
    nodes,
    peak,
    measured_ms: spent * 1e3,
    predicted_ms: predicted * 1e3,
    error: predicted / spent - 1,
  }));
  process.stdout.write(`${JSON.stringify({ rows: flat })}\n`);
}

function printChecked(rows: readonly { measured: MeasuredCase; predicted: number }[], what: string): void {
  const cells = rows.map(({ measured: { size, ranks, nodes, seconds, peak }, predicted }) => [
    `D ${size.d}, ${size.blocks} blocks, ${size.tokens} tokens`,
    nodes > 1 ? `${ranks} on ${nodes} nodes` : String(ranks),
    (peak / 1e9).toFixed(0),
    `${(seconds * 1e3).toFixed(1)} ms`,
    `${(predicted * 1e3).toFixed(1)} ms`,
    formatShare(predicted / seconds - 1, 1),
  ]);
  const note = 'Predicted for the FMA peak of a core measured next to the run, in GFLOP/s.';
  process.stdout.write(`${table([what, 'ranks', 'peak', 'measured', 'predicted', 'error'], cells)}\n${note}\n`);
}
