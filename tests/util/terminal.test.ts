import { describe, expect, it } from 'vitest';
import { bar, formatCount, formatSeconds, formatShare, table } from '../../src/util/terminal.js';

describe('figures for people', () => {
  it('are grouped, scaled and rounded', () => {
    expect([0, 999, 1_234_567].map(formatCount)).toEqual(['0', '999', '1,234,567']);
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
