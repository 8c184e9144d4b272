import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { toyConfig, trainToy } from './toy-run.js';

const folder = () => mkdtempSync(join(tmpdir(), 'turbogr-extend-'));

test('more epochs on a finished run give what the longer run gives from the beginning', async () => {
  const [grown, whole] = [folder(), folder()];
  try {
    const wanted = await trainToy({ config: toyConfig({ epochs: 5 }), folder: whole });
    await trainToy({ config: toyConfig({ epochs: 2 }), folder: grown });
    const third = await trainToy({ config: toyConfig({ epochs: 3 }), folder: grown });
    expect(third.epoch).toBe(3);
    const last = await trainToy({ config: toyConfig({ epochs: 5 }), folder: grown });
    expect([last.digest, last.step, last.epoch]).toEqual([wanted.digest, wanted.step, wanted.epoch]);
    expect(last.early).toEqual(wanted.early);
    expect(last.losses).toEqual(wanted.losses.slice(-last.losses.length));
    // The same command once more finds the longer run at its end.
    const again = await trainToy({ config: toyConfig({ epochs: 5 }), folder: grown });
    expect([again.digest, again.losses.length]).toEqual([wanted.digest, 0]);
    await expect(trainToy({ config: toyConfig({ epochs: 4 }), folder: grown })).rejects.toThrow('epochs 5, now 4');
  } finally {
    for (const path of [grown, whole]) rmSync(path, { recursive: true });
  }
});

test('a key that makes earlier steps depend on the length is named', async () => {
  const path = folder();
  try {
    const cosine = { optimizer: { schedule: { kind: 'cosine' as const } } };
    await trainToy({ config: toyConfig({ epochs: 1 }, cosine), folder: path });
    await expect(trainToy({ config: toyConfig({ epochs: 2 }, cosine), folder: path })).rejects.toThrow(
      'optimizer.schedule.kind is cosine',
    );
    const other = folder();
    await trainToy({ config: toyConfig({ epochs: 3, evaluation: { every: 2 } }), folder: other });
    await expect(
      trainToy({ config: toyConfig({ epochs: 4, evaluation: { every: 2 } }), folder: other }),
    ).rejects.toThrow('evaluation.every is 2');
    rmSync(other, { recursive: true });
    // Another key besides is another run.
    await expect(trainToy({ config: toyConfig({ epochs: 2, seed: 2 }, cosine), folder: path })).rejects.toThrow(
      'seed 1, now 2',
    );
  } finally {
    rmSync(path, { recursive: true });
  }
});
