import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SafetensorsFile, SafetensorsWriter, writeSafetensors } from '../../src/util/safetensors.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'turbogr-safetensors-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

describe('safetensors', () => {
  it('writes exactly the bytes of the format', () => {
    const path = join(folder, 'bytes.safetensors');
    writeSafetensors(path, {
      b: { dtype: 'U8', shape: [3], data: Uint8Array.of(7, 8, 9) },
      a: { dtype: 'I32', shape: [2], data: Int32Array.of(1, -2) },
      t: { dtype: 'I64', shape: [1, 1], data: BigInt64Array.of(5n) },
    });
    const bytes = readFileSync(path);
    const headerBytes = Number(bytes.readBigUInt64LE(0));
    expect(headerBytes % 8).toBe(0);
    expect(JSON.parse(bytes.subarray(8, 8 + headerBytes).toString())).toEqual({
      t: { dtype: 'I64', shape: [1, 1], data_offsets: [0, 8] },
      a: { dtype: 'I32', shape: [2], data_offsets: [8, 16] },
      b: { dtype: 'U8', shape: [3], data_offsets: [16, 19] },
    });
    const data = bytes.subarray(8 + headerBytes);
    expect([...data]).toEqual([5, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 254, 255, 255, 255, 7, 8, 9]);
  });

  it('takes tensors in pieces, in turns, and reads ranges back', () => {
    const path = join(folder, 'pieces.safetensors');
    const writer = new SafetensorsWriter(
      path,
      { x: { dtype: 'F32', shape: [4] }, y: { dtype: 'I64', shape: [2] } },
      { made: 'in a test' },
    );
    writer.append('x', Float32Array.of(1, 2, 3));
    writer.append('y', BigInt64Array.of(-1n));
    writer.append('x', Float32Array.of(4));
    writer.append('y', BigInt64Array.of(2n ** 60n));
    writer.close();
    const file = new SafetensorsFile(path);
    expect(file.metadata).toEqual({ made: 'in a test' });
    expect([...file.read('y', 'I64')]).toEqual([-1n, 2n ** 60n]);
    const two = new Float32Array(2);
    file.readInto('x', 'F32', 1, two);
    expect([...two]).toEqual([2, 3]);
    expect(() => file.readInto('x', 'F32', 3, two)).toThrow(/no elements 3..5/);
    expect(() => file.read('x', 'I32')).toThrow(/'x' is F32, expected I32/);
    file.close();
  });

  it('refuses a tensor that is too long or not full', () => {
    const writer = new SafetensorsWriter(join(folder, 'full.safetensors'), { x: { dtype: 'U8', shape: [2] } });
    expect(() => writer.append('x', new Uint8Array(3))).toThrow(/holds 2 bytes, got 3/);
    writer.append('x', new Uint8Array(1));
    expect(() => writer.close()).toThrow(/got 1 of 2 bytes/);
  });

  it('names the damage in a bad file', () => {
    const path = join(folder, 'cut.safetensors');
    writeSafetensors(path, { x: { dtype: 'F64', shape: [100], data: new Float64Array(100) } });
    truncateSync(path, 200);
    expect(() => new SafetensorsFile(path)).toThrow(/does not fit/);
    writeFileSync(path, 'not a tensor file at all');
    expect(() => new SafetensorsFile(path)).toThrow(/not a valid safetensors file: header of/);
    writeFileSync(path, '');
    expect(() => new SafetensorsFile(path)).toThrow(/ends at byte 0/);
  });
});
