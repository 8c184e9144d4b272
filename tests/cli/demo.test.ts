import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { emptyOwnFolder } from '../../src/cli/demo.js';

const root = mkdtempSync(join(tmpdir(), 'turbogr-demo-'));
afterAll(() => rmSync(root, { recursive: true }));

test('the demo empties its own folder and never that of somebody else', () => {
  const mine = join(root, 'mine');
  emptyOwnFolder(mine);
  writeFileSync(join(mine, 'log.csv'), 'x');
  emptyOwnFolder(mine);
  expect(readdirSync(mine)).toEqual(['.turbogr-demo']);
  rmSync(join(mine, '.turbogr-demo'));
  writeFileSync(join(mine, 'thesis.txt'), 'years of work');
  expect(() => emptyOwnFolder(mine)).toThrow('contains files that are not from a demo');
  expect(existsSync(join(mine, 'thesis.txt'))).toBe(true);
});
