// Files that are mapped into memory, also when they shrink meanwhile.
import { spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { mapFile } from '../../src/native/device.js';

describe('files', () => {
  it('that shrink while they are mapped do not end the process: uploads are refused and name the file', () => {
    const script = `
      import { truncateSync, writeFileSync } from 'node:fs';
      import { Device, mapFile } from ${JSON.stringify(new URL('../../dist/native/device.js', import.meta.url).href)};
      const [path] = process.argv.slice(1);
      writeFileSync(path, Buffer.alloc(1 << 20, 1));
      let bytes = new Uint8Array(mapFile(path));
      const device = Device.open({ threads: 1 });
      device.from(Float32Array.of(bytes[0]));
      truncateSync(path, 4096);
      const sum = bytes[4095] + bytes[1 << 19];
      try {
        device.from(Float32Array.of(sum));
      } catch (error) {
        console.log(JSON.stringify({ sum, kind: error.kind, input: error.input }));
      }`;
    const path = join(tmpdir(), `turbogr-shrink-${process.pid}`);
    const run = spawnSync(process.execPath, ['--input-type=module', '--eval', script, path], { encoding: 'utf8' });
    rmSync(path, { force: true });
    const told: object = JSON.parse(run.stdout || '{}');
    expect({ signal: run.signal, error: run.stderr, ...told }).toEqual({
      signal: null,
      error: '',
      sum: 1,
      kind: 'file',
      input: path,
    });
  });

  it('are mapped, and writes stay private', () => {
    const path = join(tmpdir(), `turbogr-map-${process.pid}`);
    writeFileSync(path, 'jagged');
    const bytes = new Uint8Array(mapFile(path));
    expect(Buffer.from(bytes).toString()).toBe('jagged');
    bytes[0] = 66;
    expect(Buffer.from(mapFile(path)).toString()).toBe('jagged');
    writeFileSync(path, '');
    expect(mapFile(path).byteLength).toBe(0);
    expect(() => mapFile(`${path}-absent`)).toThrow(expect.objectContaining({ kind: 'file', op: 'map_file' }));
    rmSync(path);
  });
});
