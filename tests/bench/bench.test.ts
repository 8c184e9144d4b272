// The benchmarks' JSON output: one object with the documented fields.
import { describe, expect, it } from 'vitest';
import { benchKernels } from '../../src/bench/kernels.js';
import { benchStep } from '../../src/bench/step.js';

describe('turbogr bench', () => {
  it.each(['hstu', 'fuxi', 'sasrec'] as const)('step: %s', async kind => {
    const size = { kind, d: 16, blocks: 1, heads: 2, tokens: 96, items: 50, table: 'lazy-adam' } as const;
    const report = await benchStep(size, { threads: 1, steps: 2 });
    expect(report).toMatchObject({ kind, d: 16, blocks: 1, heads: 2, tokens: 96, threads: 1, steps: 2 });
    const figures = [
      'mfu',
      'mfu_paper',
      'tokens_per_s',
      'peak_gflops',
      'peak_rss_mb',
      'step_ms',
      'crossing_us',
    ] as const;
    for (const figure of figures) expect(report[figure]).toBeGreaterThan(0);
    // One sequence of length n: the paper does not halve attention, so it counts more, and never twice as much.
    expect(report.mfu_paper / report.mfu).toBeGreaterThan(1);
    expect(report.mfu_paper / report.mfu).toBeLessThan(2);
  });

  it('counts FLOPs as the paper does', async () => {
    const size = { d: 8, blocks: 2, heads: 1, tokens: 30, length: 30, items: 10, table: 'adamw' } as const;
    // Matrices of a block: 5 D^2 for HSTU, 12 D^2 for FuXi. The paper counts the bias tables as parameters, useful work does not.
    for (const [kind, factor, matrices] of [
      ['hstu', 1, 2 * 5 * 64],
      ['fuxi', 2, 2 * 12 * 64],
    ] as const) {
      const { mfu, mfu_paper, parameters } = await benchStep({ kind, ...size }, { threads: 1, steps: 2 });
      const useful = 6 * matrices * 30 + factor * 6 * 8 * 2 * 30 * 31;
      const paper = 6 * parameters * 30 + factor * 12 * 8 * 2 * 30 * 30;
      expect(mfu_paper / mfu).toBeCloseTo(paper / useful, 6);
    }
  });

  it('kernels: a row for every op and pass', async () => {
    const { peak, rows } = await benchKernels({ d: 16, heads: 2, tokens: 64 }, { threads: 1, only: 'attention' });
    expect(peak.peak_gflops).toBeGreaterThan(0);
    expect(rows.map(row => `${row.op} ${row.pass}`)).toEqual(
      ['hstu_attention', 'fuxi_attention', 'fuxi_attention_power', 'softmax_attention'].flatMap(op => [
        `${op} forward`,
        `${op} backward`,
      ]),
    );
    for (const row of rows) expect(row.share).toBeGreaterThan(0);
  });
});
