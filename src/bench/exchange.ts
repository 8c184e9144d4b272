// Times small and large exchanges between all ranks, for the planner.

import type { Communicator } from '../dist/comm/communicator.js';
import { gatherJson } from '../dist/comm/communicator.js';
import { Device } from '../native/device.js';
import { median } from './measuring.js';

export interface ExchangeSpeed {
  /** Seconds of an exchange of one element per rank. */
  latency: number;
  /** Bytes per second sent by a rank in an exchange of `LARGE` elements per rank. */
  rate: number;
}

/** Elements for each other rank: 4 MB. */
const LARGE = 1 << 20;
/** Exchanges between two clock readings. */
const ROUND = 10;

/** Collective. Takes about `seconds`; medians over rounds of exchanges. */
export async function measureExchange(world: Communicator, seconds: number): Promise<ExchangeSpeed> {
  using device = Device.open({ threads: 1 });
  const { size } = world;
  const measure = async (each: number) => {
    const send = device.from(new Float32Array(each * size));
    const receive = device.tensor([1, each * size]);
    const counts = device.from(new BigInt64Array(size).fill(BigInt(each)));
    await device.sync();
    const start = performance.now();
    const rounds: number[] = [];
    for (let spent = 0; spent < seconds / 2; ) {
      const began = performance.now();
      for (let i = 0; i < ROUND; i++) {
        world.allToAllV(device, { send, sendCounts: counts, receive, receiveCounts: counts, unit: 1 });
      }
      await device.sync();
      rounds.push((performance.now() - began) / 1000 / ROUND);
      // Rank 0's clock decides when all stop.
      const [first] = await gatherJson(world, (performance.now() - start) / 1000);
      spent = first!;
    }
    for (const tensor of [send, receive, counts]) tensor.dispose();
    return median(rounds);
  };
  const latency = await measure(1);
  const large = await measure(LARGE);
  return { latency, rate: (LARGE * 4 * Math.max(1, size - 1)) / large };
}
