// Training steps with each configuration of negatives, interleaved: step time, the loss's share, the exposed share of drawing
// and fetching, and look-ups. Each round enqueues several steps, as the trainer does, so that work of the next step can run
// ahead; the first step of a round is a warm-up.
//
// R negatives per token, k sharing factor, P rows of a pool.

import { resolveConfig } from '../../config/resolve.js';
import type { ConfigInput } from '../../config/schema.js';
import type { Span } from '../../events/chrome-trace.js';
import { Device } from '../../native/device.js';
import { buildDefinition } from '../../nn/build.js';
import { SECONDS_PER_DAY } from '../../nn/time-bias.js';
import { Learner } from '../../train/learner.js';
import { STAGES } from '../../train/stages.js';
import { median } from '../measuring.js';
import { drawBatch, drawLengths } from '../random-batch.js';
import { exposedTime } from './exposed.js';
import type { NegativesRow, NegativesSize } from './row.js';

type NegativesInput = NonNullable<NonNullable<ConfigInput['loss']>['negatives']>;

const SETTINGS = {
  'R = 128': { count: 128 },
  'R = 128, FP16': { count: 128, storage: 'f16' },
  'R = 128, FP16 in segments of 1,024': { count: 128, storage: 'f16', segment: 1024 },
  'R = 128, FP16 in segments of 512': { count: 128, storage: 'f16', segment: 512 },
  'R = 64': { count: 64 },
  'R = 64, k = 2': { count: 64, sharing: { factor: 2 } },
  'R = 64, k = 2, FP16': { count: 64, sharing: { factor: 2 }, storage: 'f16' },
  'R = 32': { count: 32 },
  'R = 32, k = 4': { count: 32, sharing: { factor: 4 } },
  'pool 8,192, R = 128': { count: 128, pool: 8192 },
} as const satisfies Record<string, NegativesInput>;
type Setting = keyof typeof SETTINGS;
const NAMES: readonly Setting[] = [
  'R = 128',
  'R = 128, FP16',
  'R = 128, FP16 in segments of 1,024',
  'R = 128, FP16 in segments of 512',
  'R = 64',
  'R = 64, k = 2',
  'R = 64, k = 2, FP16',
  'R = 32',
  'R = 32, k = 4',
  'pool 8,192, R = 128',
];

/** Ops that bring negatives to the loss. */
const PATH = new Set([
  'draw_negatives',
  'draw_pool',
  'share_negatives',
  'mask_negatives',
  'unique_ids',
  'stage_rows',
  'fetch_negatives',
]);
/** Ops that compute with them. */
const LOSS = new Set(['sampled_softmax', 'shared_loss', 'pooled_loss']);
const UPDATE = new Set(['embedding_update', 'embedding_reduce']);
const APPLY = STAGES.indexOf('apply');
/** Steps per round. */
const TURN = 3;

/** Microseconds of a step and of its parts. */
interface Timed {
  step: number;
  path: number;
  exposed: number;
  loss: number;
  update: number;
}

export async function stepRows(size: NegativesSize): Promise<NegativesRow[]> {
  using device = Device.open(size.threads === undefined ? {} : { threads: size.threads });
  const lengths = drawLengths(size.tokens);
  const batch = drawBatch(lengths, size.items);
  const learners = NAMES.map(name => {
    const samples: Timed[] = [];
    return { name, learner: makeLearner(device, size, Math.max(...lengths), SETTINGS[name]), samples };
  });
  for (let round = 0; round <= size.steps; round++) {
    for (const { learner, samples } of learners) {
      device.recordSpans(true);
      const losses: Promise<number>[] = [];
      // On these steps the learner does not count negatives: 2, 3 and 4 of every 16.
      for (let i = 0; i < TURN; i++) {
        losses.push((await learner.step([batch], { step: 2 + i + 16 * round, totalSteps: 1000 })).loss);
      }
      await Promise.all(losses);
      await device.sync();
      const { spans } = device.spans();
      device.recordSpans(false);
      if (round > 0) samples.push(timeSteps(spans)); // the first round is a warm-up
    }
  }
  const timed = new Map(
    learners.map(({ name, samples }): [Setting, Timed] => {
      const of = (part: keyof Timed): number => median(samples.map(sample => sample[part]));
      const [step, path, exposed] = [of('step'), of('path'), of('exposed')];
      return [name, { step, path, exposed, loss: of('loss'), update: of('update') }];
    }),
  );
  return [...NAMES.flatMap(name => settingRows(name, timed.get(name)!, size)), ...comparisons(timed)];
}

/** Of the steps after the first. */
function timeSteps(spans: readonly Span[]): Timed {
  const computed = spans.filter(span => span.stream === 'compute').toSorted((a, b) => a.start - b.start);
  const isApply = ({ stage }: Span): boolean => stage === APPLY;
  const first = computed.findIndex(isApply);
  const from = computed[computed.findIndex((span, i) => i > first && !isApply(span)) - 1]!.end;
  const until = computed.findLast(isApply)!.end;
  const counted = spans.filter(span => span.start >= from && span.end <= until);
  const of = (ops: ReadonlySet<string>): number =>
    counted.filter(({ op }) => ops.has(op)).reduce((sum, { start, end }) => sum + end - start, 0) / (TURN - 1);
  return {
    step: (until - from) / (TURN - 1),
    path: of(PATH),
    exposed: exposedTime(counted, ({ op }) => PATH.has(op)) / (TURN - 1),
    loss: of(LOSS),
    update: of(UPDATE),
  };
}

function settingRows(name: Setting, { step, path, exposed, loss, update }: Timed, size: NegativesSize): NegativesRow[] {
  const share = (part: number): number => (100 * part) / step;
  return [
    { name: `step, ${name}`, value: step / 1000, unit: 'ms' },
    { name: `loss, ${name}, of the step`, value: share(loss), unit: '%', paper: 'over 30 %' },
    { name: `loss and table update, ${name}, of the step`, value: share(loss + update), unit: '%' },
    { name: `drawing and fetching, ${name}, relative to the step`, value: share(path), unit: '%' },
    { name: `drawing and fetching, ${name}, exposed, of the step`, value: share(exposed), unit: '%' },
    { name: `look-ups per token, ${name}`, value: lookups(SETTINGS[name], size.tokens), unit: 'rows' },
  ];
}

function comparisons(timed: ReadonlyMap<Setting, Timed>): NegativesRow[] {
  const loss = (name: Setting): number => timed.get(name)!.loss;
  const cost = (name: Setting): number => loss(name) + timed.get(name)!.update;
  const extra = (what: string, of: (name: Setting) => number, shared: Setting, real: Setting): NegativesRow => ({
    name: `extra logits of ${shared}, of as many gathered negatives, ${what}`,
    value: (100 * (of(shared) - of(real))) / (of('R = 128') - of(real)),
    unit: '%',
  });
  /** Loss, table update, and the exposed part of drawing and fetching. */
  const whole = (when: string, name: Setting): NegativesRow => ({
    name: `whole loss ${when}, ${name}, of the step`,
    value: (100 * (cost(name) + timed.get(name)!.exposed)) / timed.get(name)!.step,
    unit: '%',
    paper: 'over 30 %, before',
  });
  return [
    whole('before', 'R = 128'),
    whole('after', 'R = 64, k = 2, FP16'),
    extra('loss', loss, 'R = 64, k = 2', 'R = 64'),
    extra('loss and table update', cost, 'R = 64, k = 2', 'R = 64'),
    extra('loss', loss, 'R = 32, k = 4', 'R = 32'),
    extra('loss and table update', cost, 'R = 32, k = 4', 'R = 32'),
  ];
}

/** Table rows read per token, without the positives. */
function lookups({ count = 0, pool = 0 }: NegativesInput, tokens: number): number {
  return pool > 0 ? pool / tokens : count;
}

function makeLearner(device: Device, size: NegativesSize, longest: number, negatives: NegativesInput): Learner {
  const { d, blocks, tokens, items } = size;
  const config = resolveConfig({
    model: { d, blocks, heads: 4, maxLength: longest },
    loss: { negatives },
    optimizer: { table: 'lazy-adam' },
    batch: { tokens },
  });
  const definition = buildDefinition(config.model, SECONDS_PER_DAY);
  const { maxLength, dropout } = config.model;
  const shape = {
    definition,
    items,
    positions: maxLength + 1,
    dropout,
    actions: 0,
    sideFeatures: [],
    scoring: config.loss,
  };
  return new Learner({ device, config, shape, counts: new Int32Array(items).fill(1) });
}
