// Kills, stops and disconnects ranks of 2-to-4-rank runs at random moments, 200 times, resuming each time on another number of
// ranks: the long form of tests/cluster/chaos.test.ts. About ten minutes on an idle machine; needs MPI, and root to disconnect.
//
//   npm run build && node scripts/chaos.mjs [--faults 200] [--seed 1] [--limit 10]
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    faults: { type: 'string', default: '200' },
    seed: { type: 'string', default: '1' },
    /** Seconds within which a job must end. */
    limit: { type: 'string', default: '10' },
  },
});
const env = {
  ...process.env,
  TURBOGR_CHAOS: values.faults,
  TURBOGR_CHAOS_SEED: values.seed,
  TURBOGR_CHAOS_LIMIT: values.limit,
};
const { status } = spawnSync('npx', ['vitest', 'run', 'tests/cluster/chaos.test.ts'], {
  cwd: fileURLToPath(new URL('..', import.meta.url)),
  env,
  stdio: 'inherit',
});
process.exit(status ?? 1);
