// A rank program in which one rank misbehaves after a second: it throws, or its JavaScript runs forever.
import { setTimeout as sleep } from 'node:timers/promises';
import { gatherJson } from '../../../dist/dist/comm/communicator.js';
import { withRanks } from '../../../dist/dist/launch/rank-life.js';
import { UserError } from '../../../dist/util/errors.js';

const [how, who] = process.argv.slice(2);
await withRanks(async ({ world }) => {
  for (let i = 0; i < 400; i++) {
    await gatherJson(world, i);
    await sleep(50);
    if (i < 20 || (who !== 'all' && world.rank !== Number(who))) continue;
    if (how === 'throw') throw new Error('a bug of ours');
    if (how === 'refuse') throw new UserError('no-store', 'there is no store', 'Copy it.');
    if (how === 'hang') for (;;);
  }
});
