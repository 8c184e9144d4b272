import { describe, expect, it } from 'vitest';
import {
  bar,
  formatCount,
  formatCounted,
  formatSeconds,
  formatShare,
  hasColour,
  table,
} from '../../src/util/terminal.js';
import { textWidth, wrapLine } from '../../src/util/text-width.js';

describe('figures for people', () => {
  it('are grouped, scaled and rounded', () => {
    expect([0, 999, 1_234_567].map(formatCount)).toEqual(['0', '999', '1,234,567']);
    expect([0, 1, 1234].map(n => formatCounted(n, 'step'))).toEqual(['0 steps', '1 step', '1,234 steps']);
    expect([0.012, 1.25, 83.4, 3725].map(formatSeconds)).toEqual(['12 ms', '1.3 s', '1 min 23 s', '1 h 2 min']);
    expect(formatShare(0.12345)).toBe('12.35 %');
    expect(formatShare(0.5, 0)).toBe('50 %');
  });

  it('draw bars to an eighth of a cell, never beyond the width', () => {
    expect(bar(0, 4)).toBe('');
    expect(bar(0.5, 4)).toBe('██');
    expect(bar(1 / 32, 4)).toBe('▏');
    expect(bar(7, 4)).toBe('████');
  });

  it('align text to the left and numbers to the right', () => {
    expect(
      table(
        ['name', 'rows'],
        [
          ['a', '1,000'],
          ['bcdef', '7'],
        ],
      ),
    ).toBe('name    rows\na      1,000\nbcdef      7');
    expect(table(['only'], [])).toBe('only');
  });
});

describe('text of any script', () => {
  it('stays aligned: ideographs take two cells, marks none', () => {
    expect(['abc', '東京', 'é', '한국 1'].map(textWidth)).toEqual([3, 4, 1, 6]);
    const lines = table(
      ['id', 'n'],
      [
        ['東京', '1'],
        ['ab', '10'],
      ],
    ).split('\n');
    expect(new Set(lines.map(textWidth))).toEqual(new Set([8]));
  });

  it('goes on below where a table is too wide, with the names of the rows again', () => {
    const shown = table(['name', 'one', 'two'], [['row', '11111', '22222']], 14);
    expect(shown).toBe('name    one\nrow   11111\n\nname    two\nrow   22222');
  });

  it('cannot drive the terminal: control characters come out as escapes', () => {
    const shown = table(['id'], [['\u001b[2Jx\n\u0007']]);
    expect(shown).toBe('id\n\\x1b[2Jx\\x0a\\x07');
  });

  it('is broken at words, never inside them', () => {
    expect(wrapLine('  one two three', 10)).toBe('  one two\n    three');
    expect(wrapLine('averyveryverylongword x', 10)).toBe('averyveryverylongword\n  x');
    expect(wrapLine('short', 10)).toBe('short');
  });
});

describe('colour', () => {
  const stream = (isTTY: boolean) => ({ isTTY });
  it('is for terminals, unless the environment says otherwise', () => {
    expect(hasColour(stream(true), {})).toBe(true);
    expect(hasColour(stream(false), {})).toBe(false);
    expect(hasColour(stream(true), { NO_COLOR: '1' })).toBe(false);
    expect(hasColour(stream(false), { FORCE_COLOR: '1' })).toBe(true);
    expect(hasColour(stream(true), { FORCE_COLOR: '0' })).toBe(false);
    expect(hasColour(stream(true), { NO_COLOR: '1', FORCE_COLOR: '1' })).toBe(false);
    expect(hasColour(stream(true), { TERM: 'dumb' })).toBe(false);
  });
});
