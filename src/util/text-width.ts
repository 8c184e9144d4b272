// Text on a terminal: its width in cells, where to break it, and what must be escaped. Ids of a log may be in any script and
// may contain control characters; tables must stay aligned, and an id must not control the terminal.

import { stripVTControlCharacters } from 'node:util';

/** First and last code points that take two cells: East Asian Wide and Fullwidth, and emoji. */
const WIDE: readonly (readonly [number, number])[] = [
  [0x1100, 0x115f],
  [0x2e80, 0x303e],
  [0x3041, 0x33ff],
  [0x3400, 0x4dbf],
  [0x4e00, 0x9fff],
  [0xa000, 0xa4cf],
  [0xa960, 0xa97f],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe30, 0xfe6f],
  [0xff00, 0xff60],
  [0xffe0, 0xffe6],
  [0x1f300, 0x1f64f],
  [0x1f680, 0x1f6ff],
  [0x1f900, 0x1faff],
  [0x20000, 0x3fffd],
];
const NO_CELL = /^[\p{Mn}\p{Me}\p{Cf}]$/u;

function cells(character: string): number {
  const code = character.codePointAt(0)!;
  if (code < 0x300) return 1;
  if (NO_CELL.test(character)) return 0;
  return WIDE.some(([first, last]) => code >= first && code <= last) ? 2 : 1;
}

/** Width of a line in cells; colour codes take none. */
export function textWidth(text: string): number {
  let width = 0;
  for (const character of stripVTControlCharacters(text)) width += cells(character);
  return width;
}

export function padTo(text: string, width: number, side: 'left' | 'right'): string {
  const blanks = ' '.repeat(Math.max(0, width - textWidth(text)));
  return side === 'left' ? text + blanks : blanks + text;
}

/** Truncates a line to this many cells. */
export function cutTo(text: string, width: number): string {
  let used = 0;
  let cut = '';
  for (const character of text) {
    used += cells(character);
    if (used > width) break;
    cut += character;
  }
  return cut;
}

/** Wraps a line at spaces; continuation lines are indented by two more. Words are never broken. */
export function wrapLine(line: string, width: number): string {
  if (textWidth(line) <= width) return line;
  const indent = /^ */.exec(line)![0];
  const lines: string[] = [];
  let current = '';
  for (const word of line.trimStart().split(' ')) {
    const start = lines.length === 0 ? indent : `${indent}  `;
    const longer = current === '' ? start + word : `${current} ${word}`;
    if (current !== '' && textWidth(longer) > width) {
      lines.push(current);
      current = `${indent}  ${word}`;
    } else {
      current = longer;
    }
  }
  return [...lines, current].join('\n');
}

/** Escapes control characters, including ESC, and those that change the text direction. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Bidi_Control}\u2028\u2029\ufeff]/gu, character => {
    const code = character.codePointAt(0)!.toString(16);
    return code.length <= 2 ? `\\x${code.padStart(2, '0')}` : `\\u${code.padStart(4, '0')}`;
  });
}

/** The same for a multi-line message. */
export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n');
}
