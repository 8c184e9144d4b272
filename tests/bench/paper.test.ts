import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { benchPaperCommand } from '../../src/bench/paper/paper.js';
import { ladderPicture, mfuPicture } from '../../src/bench/paper/pictures.js';
import { markdown } from '../../src/bench/paper/render.js';
import { findPart, type MeasuredPart, PAPER_REPORT } from '../../src/bench/paper/report.js';
import { SECTIONS } from '../../src/bench/paper/sections.js';

const folder = mkdtempSync(join(tmpdir(), 'turbogr-bench-paper-'));
beforeAll(() => {
  vi.spyOn(process.stdout, 'write').mockReturnValue(true);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function bench(...args: string[]): Promise<void> {
  await benchPaperCommand().parseAsync(['--json', '--out', folder, ...args], { from: 'user' });
}

const file = join(folder, 'paper.json');
const report = () => PAPER_REPORT.parse(JSON.parse(readFileSync(file, 'utf8')));
const page = () => readFileSync(join(folder, 'paper.md'), 'utf8');
const names = () => report().parts.map(({ section, part, quick }) => `${section}: ${part}${quick ? ', quick' : ''}`);

describe('turbogr bench paper', () => {
  it('measures the sections asked for; the page says which are not measured', async () => {
    await bench('--quick', '--only', 'balance');
    expect(names()).toEqual(['balance: KuaiRand-shaped, quick', 'balance: short histories, quick']);
    const { parts } = report();
    expect(parts.flatMap(({ rows }) => rows).filter(({ figures }) => figures)).toHaveLength(4);
    expect(parts.every(({ peak_gflops, others }) => peak_gflops > 0 && others >= 0 && others <= 1)).toBe(true);
    expect(page()).toContain('47.01 -> 2.40 %');
    expect(page()).toMatch(/\*Quick form, .*; FMA peak [\d,]+( to [\d,]+)? GFLOP\/s; /);
    for (const { id, parts: others } of SECTIONS.filter(section => section.id !== 'balance')) {
      for (const { id: name, paper = '' } of others) {
        expect(page()).toContain(`| ${name} | ${paper} | not measured: \`turbogr bench paper --only ${id}\` has not`);
      }
    }
  });

  it('resumes after an interruption: measured parts are kept, others measured', async () => {
    const whole = report();
    const stopped = { ...whole, parts: whole.parts.slice(0, 1) };
    writeFileSync(file, JSON.stringify(stopped));
    await bench('--quick', '--only', 'balance,peers');
    expect(report().parts[0]).toEqual(stopped.parts[0]);
    expect(names()).toEqual([
      'balance: KuaiRand-shaped, quick',
      'balance: short histories, quick',
      'peers: padded and by sequence, quick',
    ]);
    const rows = report().parts.flatMap(part => part.rows);
    expect(rows.filter(({ ours, missing }) => (ours === undefined) === (missing === undefined))).toEqual([]);
    expect(page()).toContain('not measured: no Python was named');
  });

  it('the whole form replaces the quick one, and is kept by a quick run', async () => {
    await bench('--only', 'balance');
    const { parts } = report();
    expect(names().slice(0, 2)).toEqual(['balance: KuaiRand-shaped', 'balance: short histories']);
    await bench('--quick', '--only', 'balance');
    expect(report().parts).toEqual(parts);
  });

  it('tries again what could not be measured, and says why a peer was not', async () => {
    const before = report().parts;
    await bench('--quick', '--only', 'balance,peers', '--peer', join(folder, 'no-python'));
    const { parts } = report();
    expect(parts.slice(0, 2)).toEqual(before.slice(0, 2));
    expect(parts[2]!.rows).toHaveLength(2);
    for (const row of parts[2]!.rows) expect(row.missing).toMatch(/no-python cannot be started/);
  });

  it('measures a section again when asked to, and leaves the others', async () => {
    const before = report().parts;
    await bench('--quick', '--only', 'balance', '--fresh');
    expect(names().slice(0, 2)).toEqual(['balance: KuaiRand-shaped, quick', 'balance: short histories, quick']);
    expect(report().parts[2]).toEqual(before[2]);
  });

  it('never mixes figures of two machines', async () => {
    const other = { ...report(), machine: { ...report().machine, cpu: 'another' } };
    writeFileSync(file, JSON.stringify(other));
    await expect(bench('--quick', '--only', 'balance')).rejects.toThrow(/measured on another machine: another/);
    expect(report()).toEqual(other);
  });

  it('refuses a section that does not exist, naming those that do', async () => {
    const command = benchPaperCommand()
      .exitOverride()
      .configureOutput({ writeErr: () => undefined });
    await expect(command.parseAsync(['--only', 'nothing'], { from: 'user' })).rejects.toThrow(/mfu, attention/);
  });
});

describe('the page', () => {
  const machine = { cpu: 'a CPU', threads: 2, isa: 'avx2' };
  const part = (section: string, id: string, figures: Record<string, number>): MeasuredPart => ({
    section,
    part: id,
    quick: false,
    seconds: 61,
    peak_gflops: 100,
    others: 0.3,
    rows: [{ name: id, paper: '1 %', ours: 'a | b', figures }],
  });
  const found = {
    machine,
    parts: [
      part('mfu', 'hstu-tiny', { paper: 0.0043, mfu: 0.31, mfu_paper: 0.52 }),
      part('ladder', 'rungs', { us_per_token: 12.34 }),
    ],
  };

  it('shows parts that a stopped run did not reach, and that the machine was busy', () => {
    const text = markdown(found);
    expect(text).toContain(String.raw`| hstu-tiny | 1 % | a \| b |`);
    expect(text).toContain(
      '| fuxi-long | 54.71 %, 574/s, 11.54 TFLOP | not measured: `turbogr bench paper --only mfu`',
    );
    expect(text).toContain('*Whole form, 1 min 1 s; FMA peak 100 GFLOP/s; other work took up to 30 % of the cores');
  });

  it('has a picture of the models and one of the ladder', () => {
    expect(mfuPicture(found)).toMatch(/hstu-tiny<[^]*>0\.4 %<[^]*>52\.0 %<[^]*>31\.0 %</);
    expect(ladderPicture(found)).toMatch(/rungs<[^]*>12\.3 us</);
  });

  it('a quick part does not stand in for the whole form', () => {
    const quick = { machine, parts: [{ ...found.parts[0]!, quick: true }] };
    const wanted = { section: 'mfu', part: 'hstu-tiny' };
    expect(findPart(quick, { ...wanted, quick: false })).toBeUndefined();
    expect(findPart(quick, { ...wanted, quick: true })).toBeDefined();
  });

  it('has sections and parts of different names', () => {
    const ids = SECTIONS.flatMap(({ id, parts }) => parts.map(({ id: partId }) => `${id} ${partId}`));
    expect(new Set(ids).size).toBe(ids.length);
    expect(existsSync(join(folder, 'paper.svg'))).toBe(true);
  });
});
