// A rank program in which one rank misbehaves: it comes late to the groups, or after a second it throws or its JavaScript runs
// forever, or it dies and the others abort. With `mute-`, what the rank prints from then on is lost, as when mpirun ends a job
// before it has forwarded everything.
import { closeSync, openSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { gatherJson } from '../../../dist/dist/comm/communicator.js';
import { formGroups } from '../../../dist/dist/shard/rank-groups.js';
import { withRanks } from '../../../dist/dist/launch/rank-life.js';
import { UserError } from '../../../dist/util/errors.js';

const [given, who] = process.argv.slice(2);
const how = given.replace('mute-', '');
await withRanks(async ({ world }) => {
  if (how === 'late') {
    if (world.rank === Number(who)) await sleep(8000);
    await formGroups(world, 1);
    return;
  }
  for (let i = 0; i < 400; i++) {
    await gatherJson(world, i);
    await sleep(50);
    if (how === 'abort' && i === 20) {
      if (world.rank !== Number(who)) process.abort();
      await sleep(50);
      process.kill(process.pid, 'SIGKILL');
    }
    if (i < 20 || (who !== 'all' && world.rank !== Number(who))) continue;
    if (given !== how) {
      closeSync(2);
      openSync('/dev/null', 'w'); // takes the number of stderr
    }
    if (how === 'throw') throw new Error('a bug of ours');
    if (how === 'refuse') throw new UserError('no-store', 'there is no store', 'Copy it.');
    if (how === 'hang') for (;;);
  }
});
