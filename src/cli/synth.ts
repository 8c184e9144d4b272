// `turbogr synth`: generates a synthetic interaction log, and measures what can be learned from it.
import { Command, Option } from '@commander-js/extra-typings';
import { type SynthReport, synthesize } from '../data/synth/synthesize.js';
import { UserError } from '../util/errors.js';
import { interruptible } from '../util/interrupt.js';
import { largeCount, wholeNumber } from '../util/number-flags.js';
import { formatCount, formatSeconds, formatShare, ProgressLine, table } from '../util/terminal.js';

export function synthCommand() {
  return new Command('synth')
    .description('generate a synthetic log of the shape of KuaiRand-27K, at any scale, from a seed')
    .requiredOption('--out <path>', "a file ending in .csv or .parquet, or a folder for KuaiRand's own set of files")
    .option(
      '--scale <share>',
      'share of the users of KuaiRand-27K (default 0.01, unless users or rows are given)',
      largeCount,
    )
    .option('--users <count>', 'number of users', largeCount)
    .option('--rows <count>', 'exact number of events, with as many users as needed', largeCount)
    .option('--videos <count>', 'size of the catalogue (default: a tenth of the events)', largeCount)
    .option('--mean-length <events>', 'mean number of events per user (default: 11,849, as in KuaiRand)', largeCount)
    .option('--seed <number>', 'same seed, same bytes', wholeNumber, 1)
    .addOption(
      new Option('--format <format>', 'file format (default: by the extension of --out)').choices([
        'csv',
        'parquet',
      ] as const),
    )
    .addOption(
      new Option('--layout <layout>', 'one log file, or the files of KuaiRand').choices(['log', 'kuairand'] as const),
    )
    .addOption(
      new Option('--variant <name>', 'the size in the file names of KuaiRand')
        .choices(['pure', '1k', '27k'] as const)
        .default('27k' as const),
    )
    .option('--no-margin', 'do not measure the baselines and the oracle')
    .option('--json', 'print the report as JSON')
    .action(async ({ json, ...options }) => {
      const progress = new ProgressLine();
      const onProgress = (done: number, total: number) =>
        progress.update(`${formatCount(done)} of ${formatCount(total)} events, ${formatShare(done / total, 0)}`);
      const report = await interruptible(async signal => {
        try {
          return await synthesize({ ...options, signal, onProgress });
        } catch (error) {
          if (!signal.aborted) throw error;
          throw new UserError('stopped', 'stopped', 'Nothing was left behind; run it again.', { cause: error });
        } finally {
          progress.clear();
        }
      });
      process.stdout.write(`${json ? JSON.stringify(report) : describe(report)}\n`);
    });
}

function describe(report: SynthReport): string {
  const { lengths, margin } = report;
  const lines = [
    table(
      ['file', 'rows'],
      report.files.map(({ path, rows }) => [path, formatCount(rows)]),
    ),
    '',
    `${formatCount(report.events)} events of ${formatCount(report.users)} users on ${formatCount(report.videos)} videos, ` +
      `seed ${report.seed}, in ${formatSeconds(report.seconds)}`,
    `events per user: min ${formatCount(lengths.min)}, median ${formatCount(lengths.median)}, ` +
      `mean ${formatCount(lengths.mean)}, max ${formatCount(lengths.max)}`,
    `videos with fewer than 5 events: ${formatShare(report.videosCold / report.videos, 1)}`,
  ];
  if (margin) {
    const measured = margin.users === report.users ? 'all users' : `the first ${formatCount(margin.users)} users`;
    lines.push(
      '',
      `What can be learned: HR@10 on the last event of ${measured}, whole catalogue without watched videos`,
      `  popularity ${margin.popularity.toFixed(3)}   first-order Markov ${margin.markov.toFixed(3)}   ` +
        `oracle ${margin.oracle.toFixed(3)}`,
      '  The oracle knows the distribution that the events were drawn from; a sequence model should be between the two.',
    );
  }
  return lines.join('\n');
}
