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
import {
  CheckpointFolder,
  type StoredFiles,
  type StoredTensor,
  writeCheckpointFiles,
} from '../../src/train/checkpoint.js';
import { WHOLE } from '../../src/util/row-shard.js';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'turbogr-checkpoint-'));
});
afterEach(() => rmSync(root, { recursive: true }));

function tensor(name: string, values: number[]): StoredTensor {
  return {
    name,
    dtype: 'F32',
    shape: [values.length],
    async *read() {
      yield Float32Array.from(values);
    },
  };
}

async function write(folder: CheckpointFolder, step: number, best: number | null = null): Promise<string> {
  const files = { weights: [tensor('w', [step, 2, 3])], optimizer: [tensor('m', [4, step])] };
  return await writeFiles(folder, { step, best, files });
}

async function writeFiles(
  folder: CheckpointFolder,
  { step, best, files }: { step: number; best: number | null; files: StoredFiles },
): Promise<string> {
  const written = await writeCheckpointFiles(await folder.begin(step), files, 0);
  return await folder.seal({ step, best, state: { cursor: step }, files: written });
}

test('what was written comes back, from the newest', async () => {
  const folder = new CheckpointFolder(root, ['us']);
  await write(folder, 9);
  await write(folder, 100);
  const { checkpoint, refused } = new CheckpointFolder(root, ['us']).latest();
  expect(refused).toEqual([]);
  expect(checkpoint).toMatchObject({ step: 100, state: { cursor: 100 } });
  const file = checkpoint!.open('weights');
  const values = new Float32Array(3);
  file.readRows('w', WHOLE, 0, values);
  expect([...values]).toEqual([100, 2, 3]);
  file.close();
});

/** Every way in which the newest may be broken; the one before must be used, and the reason said. */
const damages: [string, (path: string) => void, RegExp][] = [
  ['truncated weights', path => truncateSync(join(path, 'weights.safetensors'), 80), /weights.*truncated/],
  ['a missing file', path => rmSync(join(path, 'optimizer.safetensors')), /optimizer.*missing/],
  ['no index', path => rmSync(join(path, 'index.json')), /index\.json is missing/],
  ['a torn index', path => truncateSync(join(path, 'index.json'), 50), /not JSON/],
  ['an edited cursor', path => edit(join(path, 'index.json'), '"cursor": 2', '"cursor": 7'), /checksum/],
  ['an edited step', path => edit(join(path, 'index.json'), '"step": 2', '"step": 3'), /checksum/],
  ['an edited best value', path => edit(join(path, 'index.json'), '"best": null', '"best": 1'), /checksum/],
  ['weights that are a folder', replaceByFolder, /weights.*missing/],
  ['one flipped bit', path => flip(join(path, 'weights.safetensors')), /weights.*checksum/],
  [
    'an unknown version',
    path => edit(join(path, 'index.json'), '"version": 4', '"version": 5'),
    /this program does not support its version/,
  ],
];

function replaceByFolder(path: string): void {
  rmSync(join(path, 'weights.safetensors'));
  mkdirSync(join(path, 'weights.safetensors'));
}

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
  const folder = new CheckpointFolder(root, ['us']);
  await write(folder, 1);
  damage(await write(folder, 2));
  const { checkpoint, refused } = folder.latest();
  expect(checkpoint?.step).toBe(1);
  expect(refused).toHaveLength(1);
  expect(refused[0]!.reason).toMatch(reason);
});

test("another run's checkpoint is refused as foreign", async () => {
  const other = join(root, 'other');
  const path = await write(new CheckpointFolder(other, ['them']), 5);
  const folder = new CheckpointFolder(join(root, 'ours'), ['us']);
  cpSync(path, join(folder.path, 'step-00000005'), { recursive: true });
  const { checkpoint, refused } = folder.latest();
  expect(checkpoint).toBeUndefined();
  expect(refused[0]!.reason).toContain('another run');
});

test('the newest and the best of each are kept, the rest goes', async () => {
  const folder = new CheckpointFolder(root, ['us']);
  for (const step of [1, 2, 3, 4, 5]) await write(folder, step, step < 5 ? 2 : 5);
  folder.prune({ keep: 2, newest: 5 });
  expect(folder.steps()).toEqual([5, 4, 2]);
  rmSync(join(root, 'step-00000005', 'index.json'));
  expect(folder.latest().checkpoint).toMatchObject({ step: 4, best: 2 });
});

test('refused checkpoints are never counted among the newest', async () => {
  const before = new CheckpointFolder(root, ['us']);
  await write(before, 1);
  truncateSync(join(await write(before, 2), 'weights.safetensors'), 80);
  mkdirSync(join(root, 'step-99999999'));
  writeFileSync(join(root, 'step-77777777'), 'a file');
  const folder = new CheckpointFolder(root, ['us']);
  expect(folder.latest().checkpoint?.step).toBe(1);
  await write(folder, 3);
  folder.prune({ keep: 1, newest: 3 });
  expect(folder.latest().checkpoint?.step).toBe(3);
  await write(folder, 4);
  folder.prune({ keep: 2, newest: 4 });
  expect(new CheckpointFolder(root, ['us']).latest().checkpoint?.step).toBe(4);
  expect(folder.steps()).toEqual([99999999, 4, 3]);
});

test('a checkpoint under the name of another step is refused', async () => {
  const folder = new CheckpointFolder(root, ['us']);
  await write(folder, 1);
  cpSync(await write(folder, 2), join(root, 'step-00000009'), { recursive: true });
  const { checkpoint, refused } = folder.latest();
  expect(checkpoint?.step).toBe(2);
  expect(refused[0]!.reason).toContain('checkpoint of step 2');
});

test('a checkpoint whose best one is damaged is refused: the run could not end with it', async () => {
  const folder = new CheckpointFolder(root, ['us']);
  await write(folder, 1, 1);
  flip(join(await write(folder, 2, 2), 'weights.safetensors'));
  await write(folder, 3, 2);
  const { checkpoint, refused } = folder.latest();
  expect(checkpoint?.step).toBe(1);
  expect(refused.map(({ reason }) => reason)).toEqual([
    expect.stringMatching(/the best one, step-00000002, is refused: weights/),
    expect.stringMatching(/checksum/),
  ]);
});

test('a half-written checkpoint is invisible, left alone by readers, and swept up by the next writer', async () => {
  const folder = new CheckpointFolder(root, ['us']);
  await write(folder, 1);
  mkdirSync(join(root, '.step-00000002.tmp'));
  writeFileSync(join(root, '.step-00000002.tmp', 'weights.safetensors'), 'half');
  expect(folder.latest().checkpoint?.step).toBe(1);
  const again = new CheckpointFolder(root, ['us']);
  expect(again.steps()).toEqual([1]);
  expect(existsSync(join(root, '.step-00000002.tmp'))).toBe(true);
  again.sweep();
  expect(existsSync(join(root, '.step-00000002.tmp'))).toBe(false);
});

test('a write that fails leaves nothing behind, and the one before it stands', async () => {
  const folder = new CheckpointFolder(root, ['us']);
  await write(folder, 1);
  const full: StoredTensor = {
    ...tensor('w', [1]),
    // oxlint-disable-next-line require-yield
    async *read() {
      throw new Error('ENOSPC: no space left on device, write');
    },
  };
  await expect(writeFiles(folder, { step: 2, best: null, files: { weights: [full] } })).rejects.toThrow('ENOSPC');
  folder.abandon(2);
  expect(readdirSync(root)).toEqual(['step-00000001']);
  expect(folder.latest().checkpoint).toMatchObject({ step: 1 });
});
