// `turbogr compare`: two runs side by side.
import { Command } from '@commander-js/extra-typings';
import { compareRuns } from '../jobs/compare-runs.js';
import { writeFileAtomic } from '../util/atomic-file.js';
import { curve } from '../util/curve.js';
import { UserError } from '../util/errors.js';
import { coloured, formatCount, table } from '../util/terminal.js';
import { type Comparison, compareViews, METRIC_HEADER, metricRows } from '../view/compare.js';
import { comparisonPage, DIFFERENT_DATA } from '../view/comparison-page.js';
import { comparedFigures } from '../view/figures.js';
import { type RunView, viewRun } from '../view/run-view.js';

export function compareCommand() {
  return new Command('compare')
    .description('two runs side by side: config, curves, figures with intervals, and whether the difference is chance')
    .argument('<a>', 'folder of a run')
    .argument('<b>', 'folder of another run; differences are b - a')
    .option('--html <file>', 'write the comparison as one HTML page')
    .option('--anyway', 'show runs on different data side by side, without a verdict')
    .option('--json', 'print the comparison as JSON')
    .action(async (a, b, { html, anyway, json }) => {
      const comparison = await compare(a, b, anyway ?? false);
      if (html !== undefined) writeFileAtomic(html, comparisonPage(comparison));
      process.stdout.write(json ? `${JSON.stringify(comparison)}\n` : `${describe(comparison)}\n`);
    });
}

async function compare(a: string, b: string, anyway: boolean): Promise<Comparison> {
  const [viewA, viewB] = [viewRun(a), viewRun(b)];
  if (viewA.fingerprint !== viewB.fingerprint && !anyway) {
    throw new UserError(
      'not-comparable',
      `${a} and ${b} have different data: fingerprints ${viewA.fingerprint.slice(0, 12)} and ${viewB.fingerprint.slice(0, 12)}`,
      'Train both on the same store; or show them side by side, without a verdict, with --anyway.',
    );
  }
  const tested = viewA.report?.test && viewB.report?.test && viewA.fingerprint === viewB.fingerprint;
  const sameRanking = viewA.report?.test?.exclude === viewB.report?.test?.exclude;
  return compareViews(viewA, viewB, tested && sameRanking ? await compareRuns(a, b) : undefined);
}

function describe(comparison: Comparison): string {
  const { a, b, sameData, differences, metrics, cases } = comparison;
  const parts = [`a: ${a.path} (${a.model}, ${a.state})\nb: ${b.path} (${b.model}, ${b.state})`];
  if (!sameData) parts.push(coloured(DIFFERENT_DATA, 'red'));
  parts.push(
    differences.length === 0
      ? 'config: the same in every key'
      : table(
          ['config', 'a', 'b'],
          differences.map(({ key, a: left, b: right }) => [key, left ?? '–', right ?? '–']),
        ),
  );
  parts.push(table(['figure', 'a', 'b'], comparedFigures(a, b)));
  for (const [name, view] of Object.entries({ a, b })) parts.push(...curves(name, view));
  if (metrics.length > 0) parts.push(table(METRIC_HEADER, metricRows(comparison)));
  else parts.push('No test comparison: one of the runs has not finished, or has no test events.');
  if (cases) {
    const { better, worse, equal } = cases;
    parts.push(
      `${formatCount(cases.cases)} cases of ${formatCount(cases.users)} users: b ranks ${formatCount(better)} higher, ${formatCount(worse)} lower, ${formatCount(equal)} the same`,
    );
  }
  return parts.join('\n\n');
}

function curves(name: string, { validations, metric }: RunView): string[] {
  if (validations.length < 2) return [];
  const title = `${name}: validation ${metric} by epoch`;
  return [curve({ title, values: validations.map(({ value }) => value), height: 5 })];
}
