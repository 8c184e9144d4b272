import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { CheckpointFolder, type StoredTensor } from '../../src/train/checkpoint.js';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'turbogr-checkpoint-'));
});
afterEach(() => rmSync(root, { recursive: true }));

function tensor(name: string, values: number[]): StoredTensor {
  return { name, dtype: 'F32', shape: [values.length], read: async () => Float32Array.from(values) };
}

async function write(folder: CheckpointFolder, step: number): Promise<string> {
  const files = { weights: [tensor('w', [step, 2, 3])], optimizer: [tensor('m', [4, step])] };
  return folder.write({ step, state: { cursor: step }, files });
}

test('what was written comes back, from the newest', async () => {
  const folder = new CheckpointFolder(root, 'us');
  await write(folder, 9);
  await write(folder, 100);
  const { checkpoint, refused } = new CheckpointFolder(root, 'us').latest();
  expect(refused).toEqual([]);
  expect(checkpoint).toMatchObject({ step: 100, state: { cursor: 100 } });
  const file = checkpoint!.open('weights');
  expect([...file.read('w', 'F32')]).toEqual([100, 2, 3]);
  file.close();
});

/** Every way in which the newest may be broken; the one before must be used, and the reason said. */
const damages: [string, (path: string) => void, RegExp][] = [
  ['truncated weights', path => truncateSync(join(path, 'weights.safetensors'), 80), /weights.*truncated/],
  ['a missing file', path => rmSync(join(path, 'optimizer.safetensors')), /optimizer.*missing/],
  ['no index', path => rmSync(join(path, 'index.json')), /index\.json is missing/],
  ['a torn index', path => truncateSync(join(path, 'index.json'), 50), /not JSON/],
  ['an edited index', path => edit(join(path, 'index.json'), '"cursor": 2', '"cursor": 7'), /checksum/],
  ['one flipped bit', path => flip(join(path, 'weights.safetensors')), /weights.*checksum/],
  [
    'an unknown version',
    path => edit(join(path, 'index.json'), '"version": 2', '"version": 3'),
    /version that this program does not read/,
  ],
];

function edit(path: string, from: string, to: string): void {
  const text = readFileSync(path, 'utf8');
  expect(text).toContain(from);
  writeFileSync(path, text.replace(from, to));
}

function flip(path: string): void {
  const bytes = readFileSync(path);
  bytes[bytes.length - 1]! ^= 1;
  writeFileSync(path, bytes);
}

test.each(damages)('%s: refused with the reason, the one before is used', async (_, damage, reason) => {
  const folder = new CheckpointFolder(root, 'us');
  await write(folder, 1);
  damage(await write(folder, 2));
  const { checkpoint, refused } = folder.latest();
  expect(checkpoint?.step).toBe(1);
  expect(refused).toHaveLength(1);
  expect(refused[0]!.reason).toMatch(reason);
});

test("another run's checkpoint is refused as foreign", async () => {
  const other = join(root, 'other');
  const path = await write(new CheckpointFolder(other, 'them'), 5);
  const folder = new CheckpointFolder(join(root, 'ours'), 'us');
  cpSync(path, join(folder.path, 'step-00000005'), { recursive: true });
  const { checkpoint, refused } = folder.latest();
  expect(checkpoint).toBeUndefined();
  expect(refused[0]!.reason).toContain('another run');
});

test('the newest and the best are kept, the rest goes', async () => {
  const folder = new CheckpointFolder(root, 'us');
  for (const step of [1, 2, 3, 4, 5]) await write(folder, step);
  folder.prune(2, 2);
  expect(folder.steps()).toEqual([5, 4, 2]);
});

test('a half-written checkpoint is invisible, and swept up by the next run', async () => {
  const folder = new CheckpointFolder(root, 'us');
  await write(folder, 1);
  mkdirSync(join(root, '.step-00000002.tmp'));
  writeFileSync(join(root, '.step-00000002.tmp', 'weights.safetensors'), 'half');
  expect(folder.latest().checkpoint?.step).toBe(1);
  const again = new CheckpointFolder(root, 'us');
  expect(again.steps()).toEqual([1]);
  expect(existsSync(join(root, '.step-00000002.tmp'))).toBe(false);
});

test('a write that fails leaves nothing behind, and the one before it stands', async () => {
  const folder = new CheckpointFolder(root, 'us');
  await write(folder, 1);
  const full = { ...tensor('w', [1]), read: () => Promise.reject(new Error('ENOSPC: no space left on device, write')) };
  await expect(folder.write({ step: 2, state: {}, files: { weights: [full] } })).rejects.toThrow('ENOSPC');
  expect(readdirSync(root)).toEqual(['step-00000001']);
  expect(folder.latest().checkpoint).toMatchObject({ step: 1 });
});
