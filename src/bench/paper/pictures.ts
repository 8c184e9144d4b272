// The comparison as pictures, SVG: horizontal bars in groups.

import type { PaperReport } from './report.js';
import type { PaperRow } from './row.js';

interface Bar {
  value: number;
  text: string;
  colour: string;
}

interface Chart {
  title: string;
  legend: readonly (readonly [name: string, colour: string])[];
  groups: readonly { label: string; bars: readonly Bar[] }[];
  /** Room for the labels. */
  left: number;
}

const [BAR, GAP, WIDTH, ROOM] = [13, 10, 720, 64];
const [GREY, BLUE, LIGHT, INK] = ['#9aa5b1', '#2563eb', '#93b4f5', '#24292f'];

function draw({ title, legend, groups, left }: Chart): string {
  const most = Math.max(...groups.flatMap(({ bars }) => bars.map(({ value }) => value)), 1e-9);
  const scale = (WIDTH - left - ROOM) / most;
  const parts = [`<text x="12" y="20" font-size="14" font-weight="600">${title}</text>`];
  let at = 12;
  for (const [name, colour] of legend) {
    parts.push(
      `<rect x="${at}" y="29" width="10" height="10" fill="${colour}"/><text x="${at + 15}" y="38">${name}</text>`,
    );
    at += 36 + 6 * name.length;
  }
  let top = legend.length > 0 ? 52 : 34;
  for (const { label, bars } of groups) {
    const middle = top + (bars.length * BAR) / 2 + 4;
    parts.push(`<text x="${left - 8}" y="${middle}" text-anchor="end">${label}</text>`);
    for (const { value, text, colour } of bars) {
      const length = value * scale;
      parts.push(
        `<rect x="${left}" y="${top}" width="${length.toFixed(1)}" height="${BAR - 1}" fill="${colour}"/>` +
          `<text x="${(left + length + 5).toFixed(1)}" y="${top + 10}">${text}</text>`,
      );
      top += BAR;
    }
    top += GAP;
  }
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${top}" width="${WIDTH}" height="${top}" font-family="sans-serif" font-size="11" fill="${INK}">` +
    `<rect width="100%" height="100%" fill="white"/>${parts.join('\n')}</svg>\n`
  );
}

function rowsOf({ parts }: PaperReport, section: string): PaperRow[] {
  return parts.filter(part => part.section === section).flatMap(({ rows }) => rows);
}

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;

/** Three bars per model: the paper's MFU, ours in the paper's counting, ours by useful work. */
export function mfuPicture(report: PaperReport): string {
  const groups = rowsOf(report, 'mfu').flatMap(({ name, figures }) => {
    if (!figures) return [];
    const bar = (figure: string, colour: string): Bar => {
      const value = figures[figure]!;
      return { value, text: percent(value), colour };
    };
    const bars = [bar('paper', GREY), bar('mfu_paper', BLUE), bar('mfu', LIGHT)];
    return [{ label: name.split(' ')[0]!, bars }];
  });
  return draw({
    title: 'Share of the peak (MFU) of whole training steps',
    legend: [
      ['the paper', GREY],
      ["here, in the paper's counting", BLUE],
      ['here, useful work alone', LIGHT],
    ],
    groups,
    left: 100,
  });
}

/** A bar per rung. */
export function ladderPicture(report: PaperReport): string {
  const groups = rowsOf(report, 'ladder').flatMap(({ name, figures }) => {
    const value = figures?.['us_per_token'];
    return value === undefined
      ? []
      : [{ label: name, bars: [{ value, text: `${value.toFixed(1)} us`, colour: BLUE }] }];
  });
  return draw({ title: 'Microseconds per token of a step, one switch at a time', legend: [], groups, left: 380 });
}
