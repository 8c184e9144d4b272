// Ranks are killed, stopped and disconnected at random moments of runs on two to four ranks, repeatedly, and each time the run is
// resumed on another number of ranks, with sharded tables and rows read ahead. It ends with the weights of an uninterrupted run
// on one rank; each fault ends the job with one message, and no process is left behind.
//
//   TURBOGR_CHAOS=<faults> TURBOGR_CHAOS_SEED=<n>   more of them, or others: scripts/chaos.mjs

import { afterAll, beforeAll, expect, test } from 'vitest';
import { NodeSpaces, whyNoNodeSpaces } from '../../src/dist/launch/node-spaces.js';
import { Random } from '../../src/util/random.js';
import { type Disturbance, disturb, orphansOf, type Outcome } from './disturbance.js';
import { launch, MAIN, MPIS, run } from './mpi.js';
import { type Result, SmallTraining } from './small-training.js';

const FAULTS = Number(process.env['TURBOGR_CHAOS'] ?? 20);
const SEED = Number(process.env['TURBOGR_CHAOS_SEED'] ?? 1);
/** Faults of one run. */
const CHAIN = 5;
/** Runs at a time: most of a stopped rank's fault is silence. */
const SIDE_BY_SIDE = 2;
/** Seconds to the end of the job: ten on a machine that has nothing else to do. */
const LIMIT = Number(process.env['TURBOGR_CHAOS_LIMIT'] ?? 30);
const LONG = process.env['TURBOGR_CHAOS'] !== undefined;
const FAULT_CODE = 75;

const whyNoCuts = whyNoNodeSpaces();
const say = (line: string) => void process.stderr.write(`chaos: ${line}\n`);
if (whyNoCuts !== undefined) say(`no rank is cut off: ${whyNoCuts}`);
const random = new Random(SEED, 'rank chaos');
const KINDS: readonly Disturbance['how'][] =
  whyNoCuts === undefined ? ['kill', 'stop', 'kill', 'cut'] : ['kill', 'stop'];

/** Rows read ahead are part of what a checkpoint must hold. */
const SETTINGS = { staleness: 1 };
const small = new SmallTraining();
beforeAll(() => (MPIS.length === 0 ? undefined : small.prepare()), 180_000);
afterAll(() => small.dispose());

/** The faults of one run, each on another number of ranks than the last. */
function drawChain(chain: number): Disturbance[] {
  let last = 0;
  return Array.from({ length: CHAIN }, (_, i) => {
    const how = KINDS[(chain + i) % KINDS.length]!;
    const choices = (how === 'cut' ? [2, 4] : [2, 3, 4]).filter(ranks => ranks !== last);
    const ranks = choices[random.below(choices.length)]!;
    last = ranks;
    const mpi = MPIS[(chain + (i >> 1)) % MPIS.length]!;
    return { how, mpi, ranks, victim: random.below(ranks), steps: 1 + random.below(15), later: random.below(40) };
  });
}

/** What is wrong with how a job ended. */
function brokenPromises({ disturbed, code, said, seconds, expected }: Outcome, orphans: readonly number[]): string[] {
  if (!disturbed) return code === 0 ? [] : [`it was left alone and ended with code ${code}`];
  const messages = said.match(/^turbogr: /gm)?.length ?? 0;
  return [
    code === FAULT_CODE ? '' : `it ended with code ${code}`,
    messages === 1 ? '' : `it printed ${messages} messages`,
    expected.test(said) ? '' : `no message matches ${expected}`,
    seconds < LIMIT ? '' : `it took ${seconds.toFixed(1)} s to end`,
    orphans.length === 0 ? '' : `processes ${orphans.join(', ')} are left`,
  ].filter(Boolean);
}

/** Disturbs one run again and again and lets it end; what went wrong. */
async function disturbRun(chain: number, wanted: Result, onFault: (fault: Disturbance, end: Outcome) => void) {
  const name = `run-${chain}-of-seed-${SEED}`;
  const training = small.command(name, SETTINGS);
  await using nodes = whyNoCuts === undefined ? new NodeSpaces({ nodes: 2 }) : undefined;
  for (const fault of drawChain(chain)) {
    const end = await disturb(small.run(name), training, fault, nodes);
    if (end.disturbed) onFault(fault, end);
    const broken = brokenPromises(end, await orphansOf(small.run(name), nodes));
    if (broken.length > 0) return [`${name}, ${JSON.stringify(fault)}: ${broken.join('; ')}\n${end.said}`];
  }
  const { code, stderr } = await launch(MPIS[chain % MPIS.length]!, 1 + random.below(2), ...training);
  if (code !== 0) return [`${name}: the last part ended with code ${code}\n${stderr}`];
  const { digest, step } = small.result(name);
  const same = digest === wanted.digest && step === wanted.step;
  return same ? [] : [`${name}: ${digest} after ${step} steps`];
}

test.skipIf(MPIS.length === 0)(
  `${FAULTS} faults, seed ${SEED}: the digest is that of the undisturbed run on one rank`,
  async () => {
    expect((await run(process.execPath, [MAIN, ...small.command('calm', SETTINGS)])).code).toBe(0);
    const wanted = small.result('calm');
    const slowest = { kill: 0, stop: 0, cut: 0 };
    const problems: string[] = [];
    const ends: number[] = [];
    let chains = 0;
    const work = async (): Promise<void> => {
      while (ends.length < FAULTS && problems.length === 0) {
        const broken = await disturbRun(chains++, wanted, (fault, { seconds }) => {
          ends.push(seconds);
          slowest[fault.how] = Math.max(slowest[fault.how], seconds);
          if (LONG) say(`${ends.length}: ${JSON.stringify(fault)} ended after ${seconds.toFixed(1)} s`);
        });
        problems.push(...broken);
      }
    };
    await Promise.all(Array.from({ length: SIDE_BY_SIDE }, work));
    const times = Object.entries(slowest).map(([how, seconds]) => `${how} ${seconds.toFixed(1)} s`);
    say(`${ends.length} faults in ${chains} runs; the slowest end of a job: ${times.join(', ')}`);
    expect(problems).toEqual([]);
    expect(ends.length).toBeGreaterThanOrEqual(FAULTS);
  },
  60_000 + FAULTS * 30_000,
);
