// The JSON output of `turbogr bench balance`, and the targets that its figures must meet.
import { expect, test, vi } from 'vitest';
import { benchBalanceCommand } from '../../src/bench/balance.js';

interface Row {
  ranks: number;
  source: string;
  policy: string;
  wait: number;
  max_token_diff: number;
  plan_ms: number;
}

function isReport(value: unknown): value is { rows: Row[]; batch_assembly_tokens_per_s: number } {
  return typeof value === 'object' && value !== null && 'rows' in value && 'batch_assembly_tokens_per_s' in value;
}

test('reports every policy, and reallocation within its targets', async () => {
  const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  await benchBalanceCommand().parseAsync(['--json', '--steps', '4', '--ranks', '8,128'], { from: 'user' });
  const report: unknown = JSON.parse(String(write.mock.calls[0]?.[0]));
  write.mockRestore();
  if (!isReport(report)) throw new Error('not a report');
  const kuairand = report.rows.filter(row => row.source === 'kuairand-shape');
  expect(kuairand.map(row => `${row.ranks} ${row.policy}`)).toEqual([
    '8 fixed',
    '8 token-aware',
    '8 reallocated',
    '128 fixed',
    '128 token-aware',
    '128 reallocated',
  ]);
  const targets = new Map([
    [8, 0.01],
    [128, 0.02],
  ]);
  for (const row of report.rows.filter(({ policy }) => policy === 'reallocated')) {
    expect(row.wait).toBeLessThan(targets.get(row.ranks)!);
    expect(row.plan_ms).toBeGreaterThan(0);
  }
  for (const ranks of targets.keys()) {
    const [fixed, tokenAware, reallocated] = kuairand.filter(row => row.ranks === ranks);
    expect(tokenAware!.wait).toBeLessThan(fixed!.wait);
    expect(reallocated!.wait).toBeLessThan(tokenAware!.wait);
    expect(reallocated!.max_token_diff).toBeLessThan(tokenAware!.max_token_diff);
  }
});

test('refuses a budget that cannot hold a sequence', async () => {
  const run = benchBalanceCommand().parseAsync(['--tokens', '100'], { from: 'user' });
  await expect(run).rejects.toThrow('100 tokens cannot hold a sequence of 4096');
});
