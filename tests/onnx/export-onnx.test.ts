// The exported graphs against our own model, by onnxruntime, on histories of a log.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import {
  checkOnnx,
  type ConfigInput,
  exportOnnx,
  exportWeights,
  prepare,
  SequenceStore,
  synthesize,
  train,
} from '../../src/index.js';
import { Message } from '../../src/jobs/onnx/message.js';
import { SafetensorsFile, writeSafetensors } from '../../src/util/safetensors.js';

const folder = mkdtempSync(join(tmpdir(), 'turbogr-onnx-'));
const store = join(folder, 'store');
afterAll(() => rmSync(folder, { recursive: true }));

const hasRuntime = (() => {
  try {
    createRequire(import.meta.url).resolve('onnxruntime-web');
    return true;
  } catch {
    return false;
  }
})();

beforeAll(async () => {
  const log = join(folder, 'log.csv');
  await synthesize({ out: log, users: 60, videos: 70, meanLength: 30, margin: false });
  const items = join(folder, 'items.csv');
  // Every third item has no category.
  const rows = Array.from({ length: 70 }, (_, i) => (i % 3 === 0 ? [] : [`${i},c${i % 5}`])).flat();
  writeFileSync(items, ['video_id,category', ...rows, ''].join('\n'));
  const features = [{ of: 'item' as const, files: [items], key: 'video_id' }];
  await prepare({ files: [log], out: store, action: 'tab', features });
}, 180_000);

/** Biases start small and train slowly: made larger, a mistake in them shows. */
function loudBiases(from: string, to: string): void {
  const file = new SafetensorsFile(from);
  const tensors = [...file.tensors].map(([name, { shape }]) => {
    const data = file.read(name, 'F32');
    if (/pos_w|ts_w|out_bias$/.test(name)) data[0]! += 0.3;
    const loud = /pos_w$|ts_w$/.test(name) && data.length !== 3;
    return [name, { dtype: 'F32' as const, shape, data: loud ? data.map(x => 20 * x) : data }] as const;
  });
  file.close();
  writeSafetensors(to, Object.fromEntries(tensors));
}

const MODELS: Record<string, ConfigInput['model']> = {
  'hstu with buckets': { kind: 'hstu', heads: 2, blocks: 2 },
  'hstu with few buckets, unequal heads, actions and features': {
    kind: 'hstu',
    timeBuckets: 32,
    dqk: 8,
    dv: 24,
    actions: true,
    sideFeatures: ['category'],
  },
  'hstu with the power function': { kind: 'hstu', timeBias: 'power' },
  'hstu without times': { kind: 'hstu', timeBias: 'off' },
  'fuxi with buckets': { kind: 'fuxi', heads: 2, feedForward: 1.5 },
  'fuxi with the power function': { kind: 'fuxi', timeBias: 'power', blocks: 2 },
  'fuxi without times': { kind: 'fuxi', timeBias: 'off' },
  sasrec: { kind: 'sasrec', heads: 2, blocks: 2 },
};

test.skipIf(!hasRuntime).each(Object.entries(MODELS))(
  '%s: onnxruntime gives our states and scores (needs onnxruntime-web)',
  { timeout: 120_000 },
  async (name, model) => {
    const path = join(folder, name.replaceAll(/\W+/g, '-'));
    const [run, plain, weights] = [join(path, 'run'), join(path, 'plain.safetensors'), join(path, 'w.safetensors')];
    const config: ConfigInput = {
      model: { d: 32, blocks: 1, maxLength: 25, ...model },
      loss: model?.kind === 'sasrec' ? { normalizeUser: false, normalizeItem: false, temperature: 1 } : {},
      maxSteps: 2,
      priors: 'off',
      threads: 1,
    };
    await train({ data: store, run, config, test: false });
    await exportWeights(run, plain);
    loudBiases(plain, weights);
    const { folder: out } = await exportOnnx(run, join(path, 'onnx'), { weights });
    const { histories, state, score } = await checkOnnx(run, out, { weights, histories: 12 });
    expect(histories).toBe(12);
    expect(state).toBeLessThan(1e-4);
    expect(score).toBeLessThan(1e-4);
    // Not by saying nothing: other weights are told apart.
    const other = await checkOnnx(run, out, { histories: 3 });
    expect(other.state).toBeGreaterThan(1e-3);

    const ids = z.array(z.string()).parse(JSON.parse(readFileSync(join(out, 'items.json'), 'utf8')));
    const source = SequenceStore.open(store);
    expect(ids).toEqual(Array.from({ length: source.itemVocabulary.size }, (_, item) => source.originalItem(item)));
    await expect(exportOnnx(run, join(path, 'onnx'))).rejects.toMatchObject({ code: 'out-exists' });
    expect(existsSync(join(path, 'onnx', 'encoder.onnx'))).toBe(true);
  },
);

test('messages are encoded as protocol buffers are', () => {
  const file = join(folder, 'message');
  new Message()
    .integer(1, 150)
    .integer(2, -1)
    .float(3, 1)
    .bytes(4, new Message().bytes(1, 'hi'))
    .integer(16, 0)
    .write(file);
  const expected = ['089601', '10ffffffffffffffffff01', '1d0000803f', '22040a026869', '800100'].join('');
  expect(readFileSync(file).toString('hex')).toBe(expected);
});
