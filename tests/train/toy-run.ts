// A small training run on data made in memory, for tests: users walk around a circle of items, so the next item
// is certain.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { resolveConfig } from '../../src/config/resolve.js';
import type { ConfigInput, ResolvedConfig } from '../../src/config/schema.js';
import { MemorySource } from '../../src/data/memory-source.js';
import type { SequenceSource } from '../../src/data/sequence-source.js';
import { countItems } from '../../src/eval/known-events.js';
import { metricOf } from '../../src/eval/metrics.js';
import { rankCases } from '../../src/eval/rank-cases.js';
import type { RunEvent } from '../../src/events/event.js';
import { Device, type KernelSet } from '../../src/native/device.js';
import { shapeModel } from '../../src/jobs/shape-model.js';
import { costOf } from '../../src/dist/balance/cost.js';
import { planSteps } from '../../src/train/plan-steps.js';
import { Learner } from '../../src/train/learner.js';
import { RunFolder } from '../../src/train/run-folder.js';
import { Trainer, type TrainingResult } from '../../src/train/trainer.js';
import { Random } from '../../src/util/random.js';

export const TOY_ITEMS = 40;

export function toySource(users = 60): MemorySource {
  const random = new Random(1, 'toy walks');
  const lengths = Int32Array.from({ length: users }, () => 5 + random.below(20));
  const offsets = new Int32Array(users + 1);
  lengths.forEach((length, u) => {
    offsets[u + 1] = offsets[u]! + length;
  });
  const events = offsets[users]!;
  const item = new Int32Array(events);
  const time = new BigInt64Array(events);
  const action = new Int32Array(events);
  for (let u = 0; u < users; u++) {
    const start = random.below(TOY_ITEMS);
    for (let i = offsets[u]!; i < offsets[u + 1]!; i++) {
      item[i] = (start + i - offsets[u]!) % TOY_ITEMS;
      time[i] = 1_600_000_000n + BigInt(i * 60);
      action[i] = u % 2;
    }
  }
  return new MemorySource({ items: TOY_ITEMS, offsets, item, time, action });
}

const TOY_CONFIG: ConfigInput = {
  model: { d: 16, blocks: 1, maxLength: 16, dropout: 0.1 },
  loss: { negatives: { count: 8 } },
  optimizer: { lr: 0.01 },
  batch: { tokens: 128 },
  epochs: 3,
};

export function toyConfig(...overrides: ConfigInput[]): ResolvedConfig {
  return resolveConfig(TOY_CONFIG, ...overrides);
}

export interface ToyRun extends TrainingResult {
  digest: string;
  losses: number[];
  validations: number[];
}

export interface ToyOptions {
  config: ResolvedConfig;
  folder?: string;
  threads?: number;
  kernels?: KernelSet;
  source?: SequenceSource;
  staged?: boolean;
  onEvent?: (event: RunEvent) => void;
  signal?: AbortSignal;
}

/** Without a folder it trains into one that is removed afterwards. */
export async function trainToy(options: ToyOptions): Promise<ToyRun> {
  if (options.folder !== undefined) return trainInto(options.folder, options);
  const folder = mkdtempSync(join(tmpdir(), 'turbogr-toy-'));
  try {
    return await trainInto(folder, options);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function trainInto(folder: string, options: ToyOptions): Promise<ToyRun> {
  const { config, threads = 2, kernels = 'best', source = toySource() } = options;
  const { fingerprint, items } = source;
  const run = RunFolder.create(folder, {
    config,
    model: config.model.kind,
    store: { relative: 'memory', absolute: 'memory' },
    fingerprint,
    content: 'memory',
    items,
  });
  using device = Device.open({ threads, kernels });
  const learner = new Learner({
    device,
    config,
    shape: shapeModel(config, source),
    counts: countItems(source, 'validation'),
    ...(options.staged && { staged: true }),
  });
  const { exclude, metric } = config.evaluation;
  const validate = async () => {
    const model = learner.evaluated;
    return metricOf(await rankCases({ model, source, part: 'validation', exclude }), metric);
  };
  const losses: number[] = [];
  const validations: number[] = [];
  const { definition } = learner.model;
  const result = await new Trainer({
    run,
    source,
    learner,
    plans: planSteps(
      source,
      config,
      costOf(length => definition.flops(length)),
    ),
    validate,
    peakFlops: 1e11,
    ...(options.signal && { signal: options.signal }),
    onEvent: event => {
      if (event.kind === 'step') losses.push(event.loss);
      if (event.kind === 'validation') validations.push(event.value);
      options.onEvent?.(event);
    },
  }).run();
  return { ...result, digest: await learner.model.digest(), losses, validations };
}
