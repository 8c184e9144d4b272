// Shared by the benchmarks: medians, and the FMA peak and memory bandwidth measured in the same run.

import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Assuming 100 GFLOP/s per core. */
const PEAK_ROUNDS_PER_SECOND = 5e8;

/** FMA peak of all threads, FLOP/s, sampled between the measurements that are compared with it. */
export class FmaPeak {
  readonly samples: number[] = [];
  readonly #device: Device;
  readonly #rounds: number;
  readonly #out: Tensor<'i64'>;

  /** `seconds`: approximate duration of a sample, long enough to see the same disturbances as the measurement. */
  constructor(device: Device, seconds = 0.01) {
    this.#device = device;
    this.#rounds = Math.round(seconds * PEAK_ROUNDS_PER_SECOND);
    this.#out = device.tensor([1, 2], 'i64');
  }

  async sample(): Promise<void> {
    this.#device.call('fma_peak').number(this.#rounds).tensor(this.#out).submit();
    const [flops, nanoseconds] = await this.#device.read(this.#out);
    this.samples.push(Number(flops) / (Number(nanoseconds) * 1e-9));
  }
}

/** Bytes per second that all threads read from memory, not cache; median of a few passes. */
export async function readBandwidth(device: Device): Promise<number> {
  using data = device.tensor([1, 64 << 20]);
  device.call('fill_constant').number(1).tensor(data).submit();
  using out = device.tensor([1, 2], 'i64');
  const samples: number[] = [];
  for (let pass = 0; pass < 5; pass++) {
    device.call('read_bandwidth').tensor(data).tensor(out).submit();
    const [bytes, nanoseconds] = await device.read(out);
    samples.push(Number(bytes) / (Number(nanoseconds) * 1e-9));
  }
  return median(samples);
}
