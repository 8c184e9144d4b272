import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { RECIPES } from '../../src/config/recipes.js';
import { parseAssignments, readConfigFile, resolveConfig, type UncheckedConfig } from '../../src/config/resolve.js';
import { configJsonSchema } from '../../src/config/schema.js';
import { UserError } from '../../src/util/errors.js';

const folder = mkdtempSync(join(tmpdir(), 'turbogr-config-'));
afterAll(() => rmSync(folder, { recursive: true }));

function refusal(config: UncheckedConfig): UserError {
  try {
    resolveConfig(config);
  } catch (error) {
    if (error instanceof UserError) return error;
    throw error;
  }
  throw new Error('was not refused');
}

test('an empty config is complete, and derived widths are filled in', () => {
  const config = resolveConfig({ model: { d: 64, heads: 4 } });
  expect(config.model).toMatchObject({ kind: 'hstu', dqk: 16, dv: 16 });
  expect(config.batch).toEqual({ tokens: 8192, lanes: 1 });
  expect(config.checkpoint).toEqual({ minutes: 5, keep: 2 }); // by time too, not only at the end of an epoch
});

test('later inputs win key by key, and batch is replaced whole', () => {
  const config = resolveConfig(
    { recipe: 'ml-1m-hstu', optimizer: { lr: 0.5 } },
    { optimizer: { eps: 1e-6 }, batch: { tokens: 4096 } },
  );
  expect(config.optimizer).toMatchObject({ lr: 0.5, eps: 1e-6, beta2: 0.98 });
  expect(config.batch).toEqual({ tokens: 4096, lanes: 1 });
  expect(config.epochs).toBe(101);
});

test('a size sets what was not set by hand', () => {
  expect(resolveConfig({ model: { size: 'micro', d: 32 } }).model).toMatchObject({ d: 32, blocks: 2, heads: 2 });
  expect(resolveConfig({ recipe: 'paper-fuxi-long' }).model).toMatchObject({
    d: 1024,
    blocks: 16,
    maxLength: 4096,
    dv: 128,
  });
});

test('unknown keys are refused, with the key that was probably meant', () => {
  const error = refusal({ model: { blcoks: 3 } });
  expect(error.code).toBe('unknown-key');
  expect(error.message).toContain('model.blcoks');
  expect(error.remedy).toContain('Did you mean "blocks"?');
  expect(refusal({ epoch: 3 }).remedy).toContain('Did you mean "epochs"?');
  expect(refusal({ recipe: 'ml1m-hstu' }).remedy).toContain('Did you mean "ml-1m-hstu"?');
});

test('a recipe of an earlier version says what to write instead', () => {
  expect(refusal({ recipe: 'fuxi-long' }).remedy).toContain('It is `paper-fuxi-long` now');
});

test('bad values are named with their key', () => {
  expect(refusal({ optimizer: { lr: -1 } }).message).toBe('config: optimizer.lr is -1');
  expect(refusal({ model: { d: 50, heads: 3 } }).message).toContain('model.heads = 3');
  expect(refusal({ batch: { tokens: 10 } }).remedy).toContain('at least 200');
  expect(refusal({ optimizer: { accumulate: 3 } }).message).toContain('batch.lanes');
  expect(refusal({ evaluation: { metric: 'auc' } }).remedy).toContain('hr@k');
});

test('rows are sent in FP16 where some are fetched, and are f32', () => {
  expect(resolveConfig({ wire: 'f16', loss: { kind: 'bce' } }).wire).toBe('f16');
  expect(() => resolveConfig({ wire: 'f16', loss: { kind: 'full-softmax' } })).toThrow(
    'wire = f16 with loss.kind = full',
  );
  const halves = { table: 'row-adagrad', tableStorage: 'f16' } as const;
  expect(() => resolveConfig({ wire: 'f16', loss: { kind: 'bce' }, optimizer: halves })).toThrow('16 bits already');
});

test('labels are smoothed over all items, so only where all are computed', () => {
  expect(resolveConfig({ loss: { kind: 'full-softmax', smoothing: 0.1 } }).loss.smoothing).toBe(0.1);
  expect(resolveConfig({ loss: { smoothing: 0 } }).loss.smoothing).toBe(0);
  expect(refusal({ loss: { smoothing: 0.1 } }).remedy).toContain('loss.kind: full-softmax');
  expect(refusal({ loss: { kind: 'full-softmax', smoothing: 1 } }).message).toBe('config: loss.smoothing is 1');
});

test('every recipe resolves', () => {
  for (const recipe of Object.keys(RECIPES)) expect(resolveConfig({ recipe }).model.d).toBeGreaterThan(0);
});

test('the published recipes are as published', () => {
  expect(resolveConfig({ recipe: 'ml-1m-hstu-large' })).toMatchObject({
    model: { d: 50, blocks: 8, heads: 2, dqk: 25, dv: 25, maxLength: 200, outputSlots: 11, dropout: 0.2 },
    loss: { kind: 'sampled-softmax', temperature: 0.05, negatives: { kind: 'uniform', count: 128 } },
    optimizer: { lr: 1e-3, beta1: 0.9, beta2: 0.98, weightDecay: 0, table: 'adamw' },
    batch: { users: 128 },
    epochs: 101,
  });
  expect(resolveConfig({ recipe: 'kuairand-27k-hstu' }).model).toMatchObject({
    d: 128,
    dqk: 32,
    dv: 128,
    dropout: 0.5,
  });
});

test('flags become a config; values are YAML', () => {
  expect(parseAssignments(['model.d=48', 'loss.negatives.kind=popularity', 'evaluation.cutoffs=[1, 10]'])).toEqual({
    model: { d: 48 },
    loss: { negatives: { kind: 'popularity' } },
    evaluation: { cutoffs: [1, 10] },
  });
  expect(() => parseAssignments(['model.d'])).toThrow(UserError);
  expect(() => parseAssignments(['model.d=['])).toThrow('not valid YAML');
});

test('files: YAML, modules, and what is neither', async () => {
  writeFileSync(join(folder, 'run.yaml'), 'recipe: ml-1m-hstu\nmodel:\n  d: 16\n');
  expect(await readConfigFile(join(folder, 'run.yaml'))).toEqual({ recipe: 'ml-1m-hstu', model: { d: 16 } });
  writeFileSync(join(folder, 'run.mjs'), 'export default { epochs: 3 };');
  expect(await readConfigFile(join(folder, 'run.mjs'))).toEqual({ epochs: 3 });
  writeFileSync(join(folder, 'list.yaml'), '- 1\n');
  await expect(readConfigFile(join(folder, 'list.yaml'))).rejects.toThrow('not a mapping');
  await expect(readConfigFile(join(folder, 'absent.yaml'))).rejects.toThrow('absent.yaml');
});

test('a TypeScript config: types are stripped, turbogr is found from anywhere, and helpers are followed', async () => {
  writeFileSync(join(folder, 'sizes.ts'), 'export enum Width { Narrow = 16 }\nexport const blocks: number = 3;\n');
  writeFileSync(
    join(folder, 'run.ts'),
    `import { defineConfig, type ConfigInput } from 'turbogr';
     import { blocks, Width } from './sizes.ts';
     const epochs = (count: number): ConfigInput => ({ epochs: count }) satisfies ConfigInput;
     export default defineConfig({ ...epochs(4), model: { d: Width.Narrow, blocks } });`,
  );
  expect(await readConfigFile(join(folder, 'run.ts'))).toEqual({ epochs: 4, model: { d: 16, blocks: 3 } });
});

test('a module that cannot be read names its file, and where', async () => {
  const failure = async (name: string, text: string): Promise<UserError> => {
    writeFileSync(join(folder, name), text);
    const caught: unknown = await readConfigFile(join(folder, name)).catch((error: unknown) => error);
    if (caught instanceof UserError) return caught;
    throw new Error('was not refused');
  };
  expect((await failure('torn.ts', 'export default {\n  epochs: 3,,\n};')).message).toMatch(/torn\.ts.*2:\d+/s);
  expect((await failure('lost.ts', 'import { x } from "./nowhere.js"; export default x;')).message).toContain(
    'nowhere',
  );
  expect((await failure('thrown.ts', 'throw new Error("no such host"); export default {};')).message).toContain(
    'no such',
  );
  expect((await failure('nothing.ts', 'export const epochs = 3;')).remedy).toContain('export default');
  expect((await failure('run.toml', 'epochs = 3')).remedy).toContain('.yaml');
});

test('the example config resolves', async () => {
  const config = resolveConfig(await readConfigFile('examples/run.yaml'));
  expect(config).toMatchObject({ model: { d: 48 }, optimizer: { table: 'adamw' }, evaluation: { patience: 5 } });
});

test('the JSON Schema describes every key and forbids others', () => {
  const schema = configJsonSchema();
  expect(schema).toMatchObject({ additionalProperties: false });
  expect(schema).toHaveProperty('properties.model.properties.maxLength');
});
