// A command line that cannot be read: told with the next command, as JSON with --json, and never with a stack.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const MAIN = join(process.cwd(), 'dist', 'cli', 'main.js');

function turbogr(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...args], { encoding: 'utf8' });
  return { status, stdout, stderr };
}

test.each([
  [['train', '--bogus', 'x'], "unknown option '--bogus'", 'npx turbogr train --help'],
  [['train'], "missing required argument 'data'", 'npx turbogr train --help'],
  [['trian'], "unknown command 'trian' (Did you mean train?)", 'npx turbogr --help'],
  [['bench', 'kernelz'], "unknown command 'kernelz' (Did you mean kernels?)", 'npx turbogr bench --help'],
])('%j', (args, message, remedy) => {
  const plain = turbogr(...args);
  expect(plain).toMatchObject({ status: 2, stdout: '' });
  expect(plain.stderr).toBe(`turbogr: ${message}\n  ${remedy} lists the options.\n`);
  const { stdout, ...rest } = turbogr(...args, '--json');
  expect(rest).toEqual({ status: 2, stderr: '' });
  expect(JSON.parse(stdout)).toEqual({
    error: { code: 'bad-usage', message, remedy: `${remedy} lists the options.` },
  });
});

test('help and version are no errors', () => {
  for (const flag of ['--help', '--version']) expect(turbogr(flag)).toMatchObject({ status: 0, stderr: '' });
});
