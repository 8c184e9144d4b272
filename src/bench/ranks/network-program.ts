// What each rank runs for `turbogr bench network`: steps of one case under several schemes, one scheme at a time.

import { readFileSync } from 'node:fs';
import { gatherJson } from '../../dist/comm/communicator.js';
import { withRanks } from '../../dist/launch/rank-life.js';
import { formGroups } from '../../dist/shard/rank-groups.js';
import type { Span } from '../../events/chrome-trace.js';
import { Device } from '../../native/device.js';
import { type StageName, STAGES } from '../../train/stages.js';
import type { RankCase } from './rank-case.js';
import { StepLoop } from './step-loop.js';
import { isExchange, unionLength } from '../../train/step-shares.js';
import type { TurnTimes } from './turn-shares.js';

export interface NetworkSpec {
  /** The settings in which the schemes differ. */
  schemes: readonly RankCase[];
  steps: number;
  turns: number;
}

/** One rank's round of steps. */
export interface SchemeTurn extends TurnTimes {
  /** Seconds of each exchange that fetches rows. */
  fetches: number[];
  /** Seconds of them not hidden by computing, including rows that are sent again. */
  bareRows: number;
  /** The same including row gradients. */
  bareSparse: number;
  /** Bytes that the rank's host sent over its link. */
  sent: number;
}

export interface SchemeTurns {
  /** By round and rank. */
  turns: SchemeTurn[][];
  /** Share of rows that an update changed after they were fetched. */
  changed: number;
}

/** Steps until all memory has been touched: before, page faults take up to half of a step's time. */
const WARM_UP = 8;
const LINK = '/sys/class/net/eth0/statistics/tx_bytes';
const { schemes, steps, turns }: NetworkSpec = JSON.parse(process.argv[2]!);

await withRanks(async ({ world }) => {
  const results: SchemeTurns[] = [];
  for (const size of schemes) {
    using device = Device.open({ threads: 1 });
    const loop = new StepLoop(device, size, await formGroups(world, size.settings?.groupSize));
    const found: SchemeTurn[][] = [];
    await loop.run(WARM_UP);
    if (world.rank === 0) process.stderr.write(`${JSON.stringify(size.settings)}: ${turns} turns of ${steps} steps\n`);
    for (let i = 0; i < turns; i++) {
      await gatherJson(world, 'ready');
      const before = sentBytes();
      const times = await loop.run(steps);
      await gatherJson(world, 'done');
      found.push(await gatherJson(world, { ...times, ...sparseTimes(loop.spans), sent: sentBytes() - before }));
    }
    const { read, changed } = loop.rows;
    results.push({ turns: found, changed: read === 0 ? 0 : changed / read });
  }
  if (world.rank === 0) process.stdout.write(`${JSON.stringify(results)}\n`);
});

function sentBytes(): number {
  return Number(readFileSync(LINK, 'utf8'));
}

function sparseTimes(spans: readonly Span[]): Pick<SchemeTurn, 'fetches' | 'bareRows' | 'bareSparse'> {
  const intervals = (of: (span: Span) => boolean) =>
    spans.filter(of).map(({ start, end }): readonly [number, number] => [start, end]);
  const exchanges = (...stages: StageName[]) =>
    intervals(span => isExchange(span) && stages.some(name => STAGES.indexOf(name) === span.stage));
  const kernels = intervals(span => !isExchange(span));
  const bare = (of: ReturnType<typeof exchanges>) => (unionLength([...of, ...kernels]) - unionLength(kernels)) / 1e6;
  return {
    fetches: exchanges('rows')
      .sort(([a], [b]) => a - b)
      .map(([start, end]) => (end - start) / 1e6),
    bareRows: bare(exchanges('rows')),
    bareSparse: bare(exchanges('rows', 'reduce')),
  };
}
