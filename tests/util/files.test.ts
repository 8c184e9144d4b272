import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { makeFolder, writeFileAtomic } from '../../src/util/atomic-file.js';
import { canonicalJson, sha256, sha256File } from '../../src/util/hash.js';
import { isAlive } from '../../src/util/process-identity.js';

const folder = mkdtempSync(join(tmpdir(), 'turbogr-files-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('files', () => {
  it('are replaced whole, with nothing left beside them', () => {
    const path = join(folder, 'a.json');
    writeFileAtomic(path, 'old');
    writeFileAtomic(path, new Uint8Array([110, 101, 119]));
    expect(readFileSync(path, 'utf8')).toBe('new');
    expect(readdirSync(folder)).toEqual(['a.json']);
    expect(() => writeFileAtomic(join(folder, 'nowhere', 'b'), 'x')).toThrow(/ENOENT/);
  });

  it('get their folders made, or an error where that cannot be', () => {
    makeFolder(join(folder, 'x', 'y', 'z'));
    expect(readdirSync(join(folder, 'x'))).toEqual(['y']);
    writeFileSync(join(folder, 'file'), '');
    expect(() => makeFolder(join(folder, 'file', 'below'))).toThrow(/cannot create the folder/);
  });

  it('hash like their content, also beyond one piece', () => {
    const content = Buffer.alloc((1 << 20) + 17, 5);
    writeFileSync(join(folder, 'large'), content);
    expect(sha256File(join(folder, 'large'))).toBe(sha256(content));
    expect(sha256('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  });
});

describe('a process id in a name', () => {
  it('is that of the process which changed the file, or of nobody', () => {
    expect(isAlive(process.pid, Date.now())).toBe(true);
    expect(isAlive(spawnSync('true').pid, Date.now())).toBe(false);
  });

  it.skipIf(!existsSync('/proc/stat'))('may have been given to another process since', () => {
    expect(isAlive(process.pid, Date.now() - 86_400_000)).toBe(false);
  });
});

describe('canonical JSON', () => {
  it('does not depend on the order of keys, and keeps that of lists', () => {
    expect(canonicalJson({ b: [2, { d: 1, c: null }], a: 'x' })).toBe('{"a":"x","b":[2,{"c":null,"d":1}]}');
  });
});
