// `turbogr ranks`: the hosts of all ranks, and the speed of exchanges between them. The first thing to run on a new cluster.
import { Command } from '@commander-js/extra-typings';
import { measureExchange } from '../bench/exchange.js';
import { gatherJson } from '../dist/comm/communicator.js';
import { withRanks } from '../dist/launch/rank-life.js';
import { positiveNumber } from '../util/number-flags.js';

export function ranksCommand() {
  return new Command('ranks')
    .description('show the ranks and how fast bytes move between them: turbogr launch -n 4 ranks')
    .option('--seconds <time>', 'seconds to measure', positiveNumber, 2)
    .option('--json', 'print JSON')
    .action(({ seconds, json = false }) =>
      withRanks(async ({ world, hosts, library }) => {
        if (world.rank === 0) process.stderr.write(`${world.size} ranks have joined; measuring for ${seconds} s\n`);
        const measured = await measureExchange(world, seconds);
        const speeds = await gatherJson(world, measured);
        if (world.rank !== 0) return;
        const rows = speeds.map((speed, rank) => ({ rank, host: hosts[rank] ?? 'this process alone', ...speed }));
        if (json) {
          process.stdout.write(`${JSON.stringify({ library, rows })}\n`);
          return;
        }
        process.stdout.write(`${library || 'one rank, no MPI'}\nrank  host              latency us   MB/s out\n`);
        for (const { rank, host, latency, rate } of rows) {
          const figures = `${(latency * 1e6).toFixed(0).padStart(10)} ${(rate / 1e6).toFixed(0).padStart(10)}`;
          process.stdout.write(`${String(rank).padStart(4)}  ${host.padEnd(16)} ${figures}\n`);
        }
      }),
    );
}
