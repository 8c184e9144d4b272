// The report as terminal text.

import { bar, formatCount, formatSeconds, formatShare, table } from '../../util/terminal.js';
import { printable } from '../../util/text-width.js';
import { TIME_KIND } from '../store/store-index.js';
import { badRowText } from './bad-row-text.js';
import type { PrepareReport } from './options.js';
import { formatTime } from './times.js';

const BAR_WIDTH = 36;

export function reportText(report: PrepareReport): string {
  return [
    summaryLines(report).join('\n'),
    storeText(report),
    lengthText(report),
    topText(report),
    splitText(report),
    `done in ${formatSeconds(Object.values(report.seconds).reduce((a, b) => a + b, 0))} -> ${printable(report.out)}`,
  ]
    .filter(part => part !== '')
    .join('\n\n');
}

/** What was read and what was left out, for both `prepare` and `train`. */
export function summaryLines(report: PrepareReport): string[] {
  const { files, rows, bad, columns, guessed, notes, filters } = report;
  const chosen = Object.entries(columns).map(
    ([role, name]) => `${role} = ${printable(name)}${guessed.includes(role) ? ' (guessed)' : ''}`,
  );
  const source = files.length === 1 ? printable(files[0]?.file ?? '') : `${files.length} files`;
  const lines = [`read ${formatCount(rows)} rows of ${source}: ${chosen.join(', ')}`, ...notes.map(printable)];
  if (bad.rows > 0) {
    lines.push(`bad rows ${formatCount(bad.rows)} (${formatShare(bad.share)}), left out, all in rejects.csv:`);
    for (const [reason, n] of Object.entries(bad.reasons)) {
      lines.push(`  ${formatCount(n).padStart(10)}  ${printable(reason)}`);
    }
    for (const row of bad.samples.slice(0, 5)) lines.push(`  ${badRowText(row)}`);
  }
  for (const { name, removed, left } of filters) {
    lines.push(`filter ${printable(name)}: removed ${formatCount(removed)} events, ${formatCount(left)} left`);
  }
  return lines;
}

function storeText({ users, items, seenItems, events, time }: PrepareReport): string {
  const kind = TIME_KIND.parse(time.kind);
  const unseen = items > seenItems ? ` (${formatCount(items - seenItems)} of them in no event)` : '';
  const span =
    time.first === null || time.last === null
      ? 'order only, no times'
      : `${formatTime(time.first, kind)} .. ${formatTime(time.last, kind)}, stored in ${kind}`;
  return `users ${formatCount(users)}   items ${formatCount(items)}${unseen}   events ${formatCount(events)}\ntime  ${span}`;
}

function lengthText({ lengths, users }: PrepareReport): string {
  const { min, median, mean, p90, p99, max, histogram } = lengths;
  const most = Math.max(...histogram.map(bin => bin.users));
  const labels = histogram.map(({ from, to }) =>
    from === to ? String(from) : `${formatCount(from)}..${formatCount(to)}`,
  );
  const width = Math.max(...labels.map(label => label.length));
  return [
    `events per user   min ${min}   median ${formatCount(median)}   mean ${mean.toFixed(1)}   p90 ${formatCount(p90)}   p99 ${formatCount(p99)}   max ${formatCount(max)}`,
    ...histogram.map(
      (bin, i) =>
        `  ${(labels[i] ?? '').padStart(width)}  ${bar(bin.users / most, BAR_WIDTH).padEnd(BAR_WIDTH)}  ${formatCount(bin.users)} (${formatShare(bin.users / users, 1)})`,
    ),
  ].join('\n');
}

function topText({ topItems }: PrepareReport): string {
  return `most frequent items\n${table(
    ['  id', 'events', 'share'],
    topItems
      .slice(0, 5)
      .map(({ id, events, share }) => [`  ${printable(id)}`, formatCount(events), formatShare(share)]),
  )}`;
}

function splitText({ split }: PrepareReport): string {
  const { kind, train, validation, test, fingerprint } = split;
  return `split ${kind}   train ${formatCount(train)}   validation ${formatCount(validation)}   test ${formatCount(test)}\nfingerprint ${fingerprint}`;
}
