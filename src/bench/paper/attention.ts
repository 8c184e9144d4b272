// Fused attention against the composition of separate ops that stores scores, bias and mask of size n x n: one sequence,
// forward pass, time and memory.
//
// n tokens, h heads, a = v width of a head.

import { Device } from '../../native/device.js';
import { add } from '../../ops/elementwise.js';
import { fillNormal } from '../../ops/fill.js';
import { hstuAttention } from '../../ops/hstu-attention.js';
import { Parameter } from '../../ops/parameter.js';
import { Tape } from '../../ops/tape.js';
import type { Tensor } from '../../tensor/tensor.js';
import { formatCount } from '../../util/terminal.js';
import { median } from '../measuring.js';
import type { Section } from './row.js';

const HEADS = 8;
const WIDTH = 128;
const ROUNDS = 3;

export const attention: Section = {
  id: 'attention',
  title: 'Fused jagged attention',
  about:
    'HSTU attention of one sequence, 8 heads of 128, with position bias, forward. The unfused form is composed of our own ops head by head: a product for the scores, an addition for the bias, SiLU, mask and the product with the values, each a pass over n x n numbers in memory. The paper measures FuXi-long at 8k.',
  async measure({ quick, threads }) {
    const n = quick ? 4096 : 8192;
    using device = Device.open(threads === undefined ? {} : { threads });
    const random = (rows: number, cols: number, std: number): Tensor<'f32'> => {
      const tensor = device.tensor([rows, cols]);
      fillNormal(device, tensor, { seed: 1, step: 0, purpose: rows + cols }, { std });
      return tensor;
    };
    const [q, k, v] = [random(n, HEADS * WIDTH, 0.1), random(n, HEADS * WIDTH, 0.1), random(n, HEADS * WIDTH, 1)];
    const posW = new Parameter(device, 'pos_w', random(1, 2 * n - 1, 0.1));
    const offsets = device.from(Int32Array.of(0, n));
    const base = device.stats().reservedBytes;

    const fused = await timed(device, () => {
      using tape = new Tape(device, { training: false });
      hstuAttention(tape, { q, k, v }, { offsets }, { heads: HEADS, n, posW });
    });
    const fusedBytes = device.stats().reservedBytes - base;

    // Scores and mask side by side, as swiglu_linear_residual reads them: (SiLU(scores) * mask) values.
    const h = device.tensor([n, 2 * n]);
    const [scores, mask] = [h.columns(0, n), h.columns(n, n)];
    device.upload(mask, causalMask(n));
    const bias = random(n, n, 0.1);
    const keys = device.tensor([WIDTH, n]);
    device.upload(keys, transposed(await device.read(k), n, HEADS * WIDTH));
    const values = device.tensor([n, WIDTH]);
    const [zero, out] = [device.tensor([n, WIDTH]), device.tensor([n, WIDTH])];
    const stats = device.tensor([n, 2]);
    const unfused = await timed(device, () => {
      for (let head = 0; head < HEADS; head++) {
        const query = q.columns(head * WIDTH, WIDTH);
        device
          .call('norm_linear_forward')
          .tensor(query)
          .number(0)
          .number(1e-6)
          .dropout(undefined)
          .tensor(keys)
          .tensor(undefined)
          .number(0)
          .tensor(scores)
          .tensor(undefined)
          .tensor(stats)
          .submit();
        add(device, 1, { x: bias, y: scores });
        device.call('swiglu_linear_residual_forward').tensor(h).tensor(values).tensor(zero).tensor(out).submit();
        query.dispose();
      }
    });
    const unfusedBytes = device.stats().reservedBytes - base;
    const megabytes = (bytes: number): string => `${formatCount(bytes / 2 ** 20)} MB`;
    return [
      {
        section: 'attention',
        name: `time at ${n} tokens: unfused -> fused`,
        paper: '961.21 -> 431.13 ms (2.23x)',
        ours: `${unfused.toFixed(0)} -> ${fused.toFixed(0)} ms (${(unfused / fused).toFixed(2)}x)`,
        figures: { unfused_ms: unfused, fused_ms: fused, tokens: n },
      },
      {
        section: 'attention',
        name: `memory at ${n} tokens: unfused -> fused`,
        paper: '47.77 -> 14.31 GB',
        ours: `${megabytes(unfusedBytes)} -> ${megabytes(fusedBytes)}`,
        figures: { unfused_bytes: unfusedBytes, fused_bytes: fusedBytes },
      },
    ];
  },
};

/** Median milliseconds of a few rounds, after one to warm up. */
async function timed(device: Device, work: () => void): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    await device.sync();
    const start = performance.now();
    work();
    await device.sync();
    if (round > 0) times.push(performance.now() - start);
  }
  return median(times);
}

/** 1 / n where a key is visible, else 0. */
function causalMask(n: number): Float32Array {
  const mask = new Float32Array(n * n);
  for (let i = 0; i < n; i++) mask.fill(1 / n, i * n, i * n + i + 1);
  return mask;
}

/** The first head's keys as columns. */
function transposed(rows: Float32Array, n: number, stride: number): Float32Array {
  const columns = new Float32Array(WIDTH * n);
  for (let j = 0; j < n; j++) for (let c = 0; c < WIDTH; c++) columns[c * n + j] = rows[j * stride + c]!;
  return columns;
}
