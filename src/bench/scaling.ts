// `turbogr bench scaling`: do more data and larger models lower the loss on unseen users? A grid of runs on a generated log,
// a fitted law, a plot. Finished cells are kept, so the same command resumes an interrupted run.
import { join } from 'node:path';
import { Command, InvalidArgumentError } from '@commander-js/extra-typings';
import type { RunEvent } from '../events/event.js';
import { runScaling, type ScalingCell, type ScalingReport } from './scaling-experiment.js';
import { makeFolder, writeFileAtomic } from '../util/atomic-file.js';
import { interruptible } from '../util/interrupt.js';
import { countNumber, wholeNumber } from '../util/number-flags.js';
import { formatCount, formatSeconds, ProgressLine, table } from '../util/terminal.js';
import { plotScaling } from './scaling-plot.js';

function countNumbers(list: string): number[] {
  const values = [...new Set(list.split(',').map(countNumber))].sort((a, b) => a - b);
  if (values.length < 2) throw new InvalidArgumentError('It must be two or more whole numbers, separated by commas.');
  return values;
}

export function benchScalingCommand() {
  return new Command('scaling')
    .description('held-out loss by model and data size: a grid of runs, a fitted law, a plot')
    .option('--folder <folder>', 'log, store and runs; finished runs are kept', join('runs', 'scaling'))
    .option('--widths <list>', 'model widths', countNumbers, [8, 16, 32, 64])
    .option(
      '--users <list>',
      'training users of each share; larger shares contain the smaller ones',
      countNumbers,
      [500, 1000, 2000],
    )
    .option(
      '--visits <count>',
      'maximum histories that a run reads, repeats included; early stopping may end it sooner',
      countNumber,
      160_000,
    )
    .option('--videos <count>', 'catalogue', countNumber, 500)
    .option('--mean-length <events>', 'mean events per user', countNumber, 50)
    .option('--seed <number>', 'same seed, same figures', wholeNumber, 1)
    .option('--seeds <count>', 'runs per cell, which are averaged', countNumber, 3)
    .option('--threads <count>', 'worker threads; does not affect results', countNumber)
    .option('--svg <file>', 'file of the plot (default: <folder>/scaling.svg)')
    .option('--json', 'print the report as JSON')
    .action(async ({ json = false, svg, ...options }) => {
      const progress = new ProgressLine();
      makeFolder(options.folder);
      const say = (line: string) => {
        progress.clear();
        process.stderr.write(`${line}\n`);
      };
      const onEvent = (event: RunEvent, cell: string) => {
        if (event.kind === 'step') progress.update(`${cell}: epoch ${event.epoch + 1}, loss ${event.loss.toFixed(4)}`);
      };
      const onCell = (cell: ScalingCell) => say(describeCell(cell));
      const report = await interruptible(signal => runScaling({ ...options, onEvent, onCell, signal }));
      progress.clear();
      if (!report) {
        say('stopped; run the same command to resume');
        return;
      }
      const picture = svg ?? join(options.folder, 'scaling.svg');
      writeFileAtomic(picture, plotScaling(report.cells, report.law));
      writeFileAtomic(join(options.folder, 'scaling.json'), `${JSON.stringify(report, null, 1)}\n`);
      process.stdout.write(json ? `${JSON.stringify(report)}\n` : `${describe(report)}\n${picture}\n`);
    });
}

function describeCell({ width, users, loss, runs }: ScalingCell): string {
  const each = runs.map(run => `${run.loss.toFixed(4)} at epoch ${run.epoch} of ${run.epochs}`).join(', ');
  const seconds = runs.reduce((sum, run) => sum + run.seconds, 0);
  return `width ${width}, ${formatCount(users)} users: loss ${loss.toFixed(4)} (${each}), ${formatSeconds(seconds)}`;
}

function describe({ cells, law, heldOutEvents }: ScalingReport): string {
  const widths = [...new Set(cells.map(cell => cell.width))];
  const users = [...new Set(cells.map(cell => cell.users))];
  const at = (width: number, share: number) => cells.find(cell => cell.width === width && cell.users === share)!;
  const header = ['width', 'parameters', ...users.map(share => `${formatCount(at(widths[0]!, share).events)} events`)];
  const rows = widths.map(width => [
    String(width),
    formatCount(at(width, users[0]!).parameters),
    ...users.map(share => at(width, share).loss.toFixed(4)),
  ]);
  return [
    `held-out loss (cross-entropy over the whole catalogue, nats) on ${formatCount(heldOutEvents)} events of users that no run trained on`,
    '',
    table(header, rows),
    '',
    `L(N, D) = ((${law.A.toPrecision(3)} / N^${law.a.toFixed(3)})^s + (${law.B.toPrecision(3)} / D^${law.b.toFixed(3)})^s)^(1/s), s = ${law.s.toFixed(1)}   ` +
      `(N parameters, D training events; rms error ${law.error.toFixed(4)})`,
  ].join('\n');
}
