// Steps of several lanes: the same bits whoever computes them and however, and the sum of the lanes to within rounding.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { ConfigInput } from '../../src/config/schema.js';
import { Device } from '../../src/native/device.js';
import { GradientSums, type Gradients, type Trained } from '../../src/optim/gradients.js';
import { shapeModel } from '../../src/jobs/shape-model.js';
import { Model } from '../../src/nn/model.js';
import { LaneGradients } from '../../src/train/lane-gradients.js';
import { lanesOf } from '../../src/train/lane-tree.js';
import { LaneWork } from '../../src/train/lane-work.js';
import { Objective } from '../../src/train/objective.js';
import { drawBatch } from '../../src/bench/random-batch.js';
import type { JaggedBatch } from '../../src/tensor/jagged.js';
import { TOY_ITEMS, toyConfig, toySource, trainToy } from './toy-run.js';

const EIGHT: ConfigInput = { batch: { tokens: 32, lanes: 8 }, optimizer: { clip: 1 } };

const WAYS: [string, ConfigInput][] = [
  ['dense AdamW', {}],
  ['lazy Adam, popularity', { optimizer: { table: 'lazy-adam' }, loss: { negatives: { kind: 'popularity' } } }],
  ['row-wise AdaGrad, in-batch', { optimizer: { table: 'row-adagrad' }, loss: { negatives: { kind: 'in-batch' } } }],
  ['full softmax, lazy Adam', { optimizer: { table: 'lazy-adam' }, loss: { kind: 'full-softmax', smoothing: 0.1 } }],
  ['FuXi, gBCE, actions', { model: { kind: 'fuxi', actions: true }, loss: { kind: 'gbce' } }],
];

describe.each(WAYS)('eight lanes, %s', (_, overrides) => {
  const config = (...more: ConfigInput[]) => toyConfig(EIGHT, overrides, ...more);

  test('the same bits with 1, 2 and 3 threads, and with overlap off', async () => {
    const one = await trainToy({ config: config(), threads: 1 });
    for (const [threads, overlap] of [
      [2, 'on'],
      [3, 'on'],
      [2, 'off'],
    ] as const) {
      const run = await trainToy({ config: config({ overlap }), threads });
      expect(run.digest).toBe(one.digest);
      expect(run.losses).toEqual(one.losses);
    }
  });

  test('the same bits from rows staged beside the table, with one lane and with eight', async () => {
    for (const lanes of [1, 8]) {
      const some = config({ batch: { tokens: 32, lanes }, maxSteps: 6 });
      const table = await trainToy({ config: some });
      const staged = await trainToy({ config: some, staged: true });
      expect(staged.digest).toBe(table.digest);
    }
  });

  test('interrupted and resumed equals uninterrupted', async () => {
    const whole = await trainToy({ config: config() });
    const folder = mkdtempSync(join(tmpdir(), 'turbogr-lanes-'));
    const stop = new AbortController();
    const first = await trainToy({
      config: config(),
      folder,
      signal: stop.signal,
      onEvent: event => {
        if (event.kind === 'step' && event.step === 3) stop.abort();
      },
    });
    expect(first.reason).toBe('interrupted');
    const rest = await trainToy({ config: config(), folder });
    expect(rest.digest).toBe(whole.digest);
    expect([...first.losses, ...rest.losses]).toEqual(whole.losses);
    rmSync(folder, { recursive: true });
  });
});

/** The gradients of a model on seven lanes, two of them empty, computed by this many workers. */
class SevenLanes {
  static readonly lanes = 7;
  readonly device: Device;
  readonly model: Model;
  readonly sums: GradientSums;
  readonly #objective: Objective;
  readonly #trained: Trained;
  readonly #batches: (JaggedBatch | undefined)[];

  constructor(device: Device, loss: ConfigInput['loss']) {
    const config = toyConfig({ ...(loss && { loss }) });
    this.device = device;
    this.model = new Model(device, shapeModel(config, toySource()), 5);
    const { parameters, tables } = this.model;
    this.#trained = { parameters, tables, decays: [] };
    this.sums = new GradientSums(device, this.#trained);
    const counts = new Int32Array(TOY_ITEMS).fill(1);
    this.#objective = new Objective({ device, scorer: this.model.scorer, config: config.loss, counts });
    const lengths = [[5, 9], undefined, [16], [3, 4, 11], [2], undefined, [7, 7]];
    this.#batches = lengths.map(some => some && drawBatch(some, TOY_ITEMS));
  }

  /** Of one lane, reduced; nothing for an empty one. */
  lane(lane: number): Gradients | undefined {
    const input = this.#batches[lane];
    if (!input) return undefined;
    const parts = { device: this.device, model: this.model, objective: this.#objective };
    const work = new LaneWork({ ...parts, input, seed: 5, key: 7 + lane, encoderDraws: 9 });
    work.read('compute');
    work.exchange('compute');
    work.rows('compute');
    work.dense(64);
    const taken = this.sums.take({ lane, defer: () => false });
    work.dispose();
    return taken;
  }

  total(workers: number): Gradients {
    const make = () => new LaneGradients(SevenLanes.lanes, this.sums, this.#trained);
    const whole = make();
    for (let worker = 0; worker < workers; worker++) {
      const part = make();
      const { from, to } = lanesOf(SevenLanes.lanes, worker, workers);
      for (let lane = from; lane < to; lane++) part.putNode({ from: lane, to: lane + 1, value: this.lane(lane) });
      for (const partial of part.partials) whole.putNode(partial);
    }
    return whole.total()!;
  }

  /** All gradients as matrices: of each parameter, then of each table. */
  async read({ dense, tables }: Gradients): Promise<Float32Array[]> {
    const rows = tables.map(async (gradient, i) => {
      if (gradient?.kind === 'dense') return await this.device.read(gradient.grad);
      const { value } = this.model.tables[i]!;
      const all = new Float32Array(value.size);
      if (gradient?.kind !== 'rows') return all;
      const [ids, data] = [await this.device.read(gradient.list.ids), await this.device.read(gradient.list.rows)];
      ids.forEach((id, u) => {
        if (id >= 0) all.set(data.subarray(u * value.cols, (u + 1) * value.cols), id * value.cols);
      });
      return all;
    });
    const matrices = dense.map((grad, i) =>
      grad ? this.device.read(grad) : Promise.resolve(new Float32Array(this.model.parameters[i]!.value.size)),
    );
    return Promise.all([...matrices, ...rows]);
  }
}

describe.each(['sampled-softmax', 'full-softmax'] as const)('gradients of seven lanes, %s', kind => {
  test('one, two, three and seven workers agree to the bit, and with a plain sum in double precision closely', async () => {
    using device = Device.open({ threads: 2 });
    const lanes = new SevenLanes(device, { kind });
    const one = await lanes.read(lanes.total(1));
    for (const workers of [2, 3, 7]) expect(await lanes.read(lanes.total(workers))).toEqual(one);
    const plain = one.map(values => new Float64Array(values.length));
    for (let lane = 0; lane < SevenLanes.lanes; lane++) {
      const gradients = lanes.lane(lane);
      if (!gradients) continue;
      (await lanes.read(gradients)).forEach((values, i) => values.forEach((x, at) => (plain[i]![at]! += x)));
      lanes.sums.release(gradients);
    }
    for (const [i, values] of one.entries()) {
      const largest = plain[i]!.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
      values.forEach((x, at) => expect(Math.abs(x - plain[i]![at]!)).toBeLessThanOrEqual(1e-6 * largest));
    }
  });
});
