// Measures the FMA peak of the device's threads in FLOP/s, the denominator of MFU. Best of a few short tries, since the first
// ones wake up the cores.

import type { Device } from '../native/device.js';

const TRIES = 5;
/** About 10 ms on a core of 100 GFLOP/s. */
const ROUNDS = 1_000_000;

export async function measurePeak(device: Device): Promise<number> {
  using out = device.tensor([1, 2], 'i64');
  let best = 0;
  for (let i = 0; i < TRIES; i++) {
    device.call('fma_peak').number(ROUNDS).tensor(out).submit();
    const [flops, nanoseconds] = await device.read(out);
    best = Math.max(best, Number(flops) / (Number(nanoseconds) * 1e-9));
  }
  return best;
}
