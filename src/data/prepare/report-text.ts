// The report as a person reads it in a terminal.

import { bar, formatCount, formatSeconds, formatShare, table } from '../../util/terminal.js';
import { TIME_KIND } from '../store/store-index.js';
import type { PrepareReport } from './options.js';
import { badRowText } from './stage.js';
import { formatTime } from './times.js';

const BAR_WIDTH = 36;

export function reportText(report: PrepareReport): string {
  return [
    inputText(report),
    filterText(report),
    storeText(report),
    lengthText(report),
    topText(report),
    splitText(report),
    `done in ${formatSeconds(Object.values(report.seconds).reduce((a, b) => a + b, 0))} -> ${report.out}`,
  ]
    .filter(part => part !== '')
    .join('\n\n');
}

function inputText({ files, rows, bad, columns }: PrepareReport): string {
  const chosen = Object.entries(columns).map(([role, name]) => `${role} = ${name}`);
  const lines = [
    `read ${formatCount(rows)} rows of ${files.length === 1 ? files[0]?.file : `${files.length} files`}  (${chosen.join(', ')})`,
  ];
  if (bad.rows > 0) {
    lines.push(`bad rows ${formatCount(bad.rows)} (${formatShare(bad.share)}), all in rejects.csv:`);
    for (const [reason, n] of Object.entries(bad.reasons)) lines.push(`  ${formatCount(n).padStart(10)}  ${reason}`);
    for (const row of bad.samples.slice(0, 5)) lines.push(`  ${badRowText(row)}`);
  }
  return lines.join('\n');
}

function filterText({ filters }: PrepareReport): string {
  if (filters.length === 0) return '';
  return table(
    ['filter', 'removed', 'left'],
    filters.map(({ name, removed, left }) => [name, formatCount(removed), formatCount(left)]),
  );
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
    topItems.slice(0, 5).map(({ id, events, share }) => [`  ${id}`, formatCount(events), formatShare(share)]),
  )}`;
}

function splitText({ split }: PrepareReport): string {
  const { kind, train, validation, test, fingerprint } = split;
  return `split ${kind}   train ${formatCount(train)}   validation ${formatCount(validation)}   test ${formatCount(test)}\nfingerprint ${fingerprint}`;
}
