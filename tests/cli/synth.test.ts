// `turbogr synth` as a person or a script meets it.
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { synthCommand } from '../../src/cli/synth.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'turbogr-synth-cli-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

async function run(...args: string[]): Promise<string> {
  const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  try {
    await synthCommand().parseAsync(args, { from: 'user' });
    return write.mock.calls.map(([text]) => String(text)).join('');
  } finally {
    write.mockRestore();
  }
}

test('states what there is to learn', async () => {
  const text = await run('--out', join(folder, 'log.csv'), '--users', '50', '--videos', '500', '--mean-length', '60');
  expect(text).toMatch(/popularity 0\.\d+ {3}first-order Markov 0\.\d+ {3}oracle 0\.\d+/);
  expect(existsSync(join(folder, 'log.csv'))).toBe(true);
});

test('prints its report as JSON, and takes shorthands for counts', async () => {
  const text = await run(
    '--out',
    join(folder, 'log.csv'),
    '--rows',
    '2k',
    '--mean-length',
    '50',
    '--no-margin',
    '--json',
  );
  expect(JSON.parse(text)).toMatchObject({ events: 2000, seed: 1, files: [{ rows: 2000 }] });
  expect(text).not.toContain('margin');
});

test.each(['0', '-3', 'many', '1.2.3'])('refuses --users %s', async users => {
  const command = synthCommand()
    .exitOverride()
    .configureOutput({ writeErr: () => {} });
  const args = ['--out', join(folder, 'log.csv'), `--users=${users}`];
  await expect(command.parseAsync(args, { from: 'user' })).rejects.toThrow('a number above 0');
});
