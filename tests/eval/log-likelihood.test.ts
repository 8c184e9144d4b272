import { expect, test } from 'vitest';
import { resolveConfig } from '../../src/config/resolve.js';
import { MemorySource } from '../../src/data/memory-source.js';
import type { Split } from '../../src/data/sequence-source.js';
import { logLikelihood } from '../../src/eval/log-likelihood.js';
import { Device } from '../../src/native/device.js';
import { Model } from '../../src/nn/model.js';
import { Tape } from '../../src/ops/tape.js';
import { shapeModel } from '../../src/jobs/shape-model.js';
import { Random } from '../../src/util/random.js';
import { readAllRows } from '../../src/ops/copy-rows.js';

const ITEMS = 31;
const LENGTHS = [1, 2, 3, 9, 10, 11, 40, 5, 7];
const [D, MAX_LENGTH] = [8, 10];

function sourceOf(split?: Split): MemorySource {
  const random = new Random(5, 'held out');
  const offsets = Int32Array.from([0, ...LENGTHS]);
  for (let u = 1; u < offsets.length; u++) offsets[u]! += offsets[u - 1]!;
  const item = Int32Array.from({ length: offsets.at(-1)! }, () => random.below(ITEMS));
  return new MemorySource({ items: ITEMS, offsets, item, ...(split && { split }) });
}

/** Every third user is held out whole. */
const BY_USER: Split = {
  kind: 'user:0.3',
  trainEnd: Int32Array.from(LENGTHS, (length, u) => (u % 3 === 0 ? 0 : length)),
  validationEnd: Int32Array.from(LENGTHS),
};

test.each([
  ['leave-one-out, cosines', undefined, 'test', { temperature: 0.1, normalizeUser: true, normalizeItem: true }],
  [
    'leave-one-out, dot products',
    undefined,
    'validation',
    { temperature: 1, normalizeUser: false, normalizeItem: false },
  ],
  ['users held out', BY_USER, 'validation', { temperature: 0.5, normalizeUser: false, normalizeItem: true }],
] as const)('equals brute force: %s', async (_, split, part, loss) => {
  const source = sourceOf(split);
  const config = resolveConfig({ model: { d: D, maxLength: MAX_LENGTH, blocks: 1 }, loss });
  using device = Device.open({ threads: 2 });
  const model = new Model(device, shapeModel(config, source), 3);
  const row = (rows: Float32Array, i: number) => Array.from(rows.subarray(D * i, D * i + D));
  const unit = (x: number[], wanted: boolean) => x.map(y => y / (wanted ? Math.max(1e-6, Math.hypot(...x)) : 1));
  const table = await readAllRows(device, model.items.value);
  const [starts, ends] =
    part === 'test'
      ? [source.split.validationEnd, source.lengths]
      : [source.split.trainEnd, source.split.validationEnd];

  let [sum, count] = [0, 0];
  for (let user = 0; user < source.users; user++) {
    const events = { item: new Int32Array(source.length(user)) };
    source.read(user, 0, source.length(user), events, 0);
    const from = Math.max(0, ends[user]! - 1 - MAX_LENGTH);
    for (let target = Math.max(from + 1, starts[user]!); target < ends[user]!; target++) {
      using tape = new Tape(device, { training: false });
      using batch = model.upload({ offsets: Int32Array.of(0, target - from), item: events.item.slice(from, target) });
      const states = await device.read(model.encode(tape, batch));
      const state = unit(row(states, target - from - 1), loss.normalizeUser);
      const logits = Array.from({ length: ITEMS }, (__, i) => {
        const e = unit(row(table, i), loss.normalizeItem);
        return state.reduce((dot, x, k) => dot + x * e[k]!, 0) / loss.temperature;
      });
      sum += logits[events.item[target]!]! - Math.log(logits.reduce((total, x) => total + Math.exp(x), 0));
      count++;
    }
  }
  expect(await logLikelihood({ model, source, part })).toBeCloseTo(sum / count, 4);
});
