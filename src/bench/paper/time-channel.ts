// FuXi's time channel as a table over buckets and as a function of time (FuXi-gamma's, which the paper uses): forward and
// backward attention of a batch, interleaved in one process.

import { Device } from '../../native/device.js';
import { fillConstant, fillNormal } from '../../ops/fill.js';
import { fuxiAttention } from '../../ops/fuxi-attention.js';
import { Parameter } from '../../ops/parameter.js';
import { Tape } from '../../ops/tape.js';
import { SECONDS_PER_DAY } from '../../nn/time-bias.js';
import type { Tensor } from '../../tensor/tensor.js';
import { median } from '../measuring.js';
import { drawBatch, drawLengths } from '../random-batch.js';
import type { PaperRow, Section, SectionOptions } from './row.js';

const [TOKENS, HEADS, WIDTH] = [8192, 8, 64];
const CASES = [
  { name: 'sequences of mean length 200', length: undefined },
  { name: 'sequences of length 2,048', length: 2048 },
];

export const timeChannel: Section = {
  id: 'time-channel',
  title: "FuXi's time channel: buckets against a function of time",
  about: `FuXi attention of ${TOKENS.toLocaleString('en-US')} tokens, ${HEADS} heads of ${WIDTH}, forward and backward with the gradients of all weights: 128 buckets, and alpha * gamma^(T^beta) with T in days. The paper uses the function and gives no time for it.`,
  parts: CASES.map(({ name, length }) => ({
    id: name,
    measure: async options => [await compare(name, drawLengths(TOKENS, length), options)],
  })),
};

async function compare(
  name: string,
  lengths: readonly number[],
  { quick, threads }: SectionOptions,
): Promise<PaperRow> {
  using device = Device.open(threads === undefined ? {} : { threads });
  const random = (rows: number, cols: number, std: number): Tensor<'f32'> => {
    const tensor = device.tensor([rows, cols]);
    fillNormal(device, tensor, { seed: 1, step: 0, purpose: rows + cols }, { std });
    return tensor;
  };
  const d = HEADS * WIDTH;
  const n = Math.max(...lengths);
  const [q, k, v] = [random(TOKENS, d, 0.1), random(TOKENS, d, 0.1), random(TOKENS, d, 1)];
  const batch = drawBatch(lengths, 1000);
  const sequences = {
    offsets: device.from(batch.offsets),
    times: device.from(batch.time),
    queryTimes: device.from(batch.nextTime),
  };
  const posW = new Parameter(device, 'pos_w', random(1, 2 * n - 1, 0.1));
  const channels = [
    { tsW: new Parameter(device, 'ts_w', random(1, 129, 0.1)) },
    {
      tsW: new Parameter(device, 'ts_w', device.from(Float32Array.of(0.02, 0.5413, 1.3863))),
      timeUnit: SECONDS_PER_DAY,
    }, // beta 1, gamma 0.8
  ].map(bias => ({ bias, times: [] as number[] }));
  for (let round = 0; round <= (quick ? 7 : 25); round++) {
    for (const { bias, times: taken } of channels) {
      await device.sync();
      const start = performance.now();
      using tape = new Tape(device, { training: true });
      for (const input of [q, k, v]) tape.watch(input);
      const o = fuxiAttention(tape, { q, k, v }, sequences, { heads: HEADS, n, posW, ...bias });
      const grad = device.tensor(o.shape);
      fillConstant(device, grad, 1e-3);
      tape.seedGrad(o, grad);
      tape.backward();
      await device.sync();
      if (round > 0) taken.push(performance.now() - start);
    }
  }
  const [buckets, power] = channels.map(({ times: taken }) => median(taken));
  return {
    name: `${name}: buckets -> function`,
    ours: `${buckets!.toFixed(1)} -> ${power!.toFixed(1)} ms (${(buckets! / power!).toFixed(2)}x)`,
    figures: { buckets_ms: buckets!, power_ms: power! },
  };
}
