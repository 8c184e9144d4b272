import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { benchPaperCommand } from '../../src/bench/paper/paper.js';
import { PAPER_REPORT } from '../../src/bench/paper/render.js';

const folder = mkdtempSync(join(tmpdir(), 'turbogr-bench-paper-'));
beforeAll(() => {
  vi.spyOn(process.stdout, 'write').mockReturnValue(true);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function bench(...args: string[]): Promise<void> {
  await benchPaperCommand().parseAsync(['--quick', '--json', '--out', folder, ...args], { from: 'user' });
}

function report() {
  return PAPER_REPORT.parse(JSON.parse(readFileSync(join(folder, 'paper.json'), 'utf8')));
}

describe('turbogr bench paper', () => {
  it('measures the sections asked for; every row is measured or says why it is not', async () => {
    await bench('--only', 'balance');
    const { rows } = report();
    expect(new Set(rows.map(({ section }) => section))).toEqual(new Set(['balance']));
    expect(rows.filter(({ figures }) => figures)).toHaveLength(4);
    expect(readFileSync(join(folder, 'paper.md'), 'utf8')).toContain('47.01 -> 2.40 %');
  });

  it('keeps what an earlier run measured, and measures the rest', async () => {
    const before = report().rows;
    await bench('--only', 'balance,peers');
    expect(report().rows.slice(0, before.length)).toEqual(before);
    const { rows } = report();
    expect(rows.length).toBeGreaterThan(before.length);
    expect(rows.filter(({ ours, missing }) => (ours === undefined) === (missing === undefined))).toEqual([]);
    const page = readFileSync(join(folder, 'paper.md'), 'utf8');
    expect(page).toContain('not measured: no Python was named');
    expect(page).toMatch(/FMA peak [\d.,]+ GFLOP\/s .* load [\d.]+/);
  });

  it('says why a peer was not measured', async () => {
    await bench('--only', 'peers', '--fresh', '--peer', join(folder, 'no-python'));
    const { rows, machine } = report();
    expect(rows).toHaveLength(2);
    for (const row of rows) expect(row.missing).toMatch(/no-python cannot be started/);
    expect(machine.load).toBeGreaterThanOrEqual(0);
  });

  it('refuses a section that does not exist, naming those that do', async () => {
    const command = benchPaperCommand()
      .exitOverride()
      .configureOutput({ writeErr: () => undefined });
    await expect(command.parseAsync(['--only', 'nothing'], { from: 'user' })).rejects.toThrow(/mfu, attention/);
  });
});
