// Compares steps of several builds, interleaved in one process, op by op: the only fair comparison on a machine whose speed
// changes from minute to minute. Two concurrent or consecutive processes differ by 20 % with the same binary.
//
//   node native/lab/compare-builds.mjs <rounds> <kind> <width> <build>...
//
// A build is a checkout after `npm run build`: its `dist` and `native/turbogr.node` are loaded. Prints milliseconds per step
// (10th, 50th and 90th percentile), the median of their ratios to the first build's in the same round, and each build's
// last loss: equal numbers mean equal bits.

import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [rounds, kind, width, ...builds] = process.argv.slice(2);
if (builds.length === 0 || new Set(builds.map(build => resolve(build))).size < builds.length) {
  console.error('Usage: node native/lab/compare-builds.mjs <rounds> hstu|fuxi|sasrec <width> <build>...');
  console.error('Each build once: a module is loaded once. A copy of a build in another folder shows the noise.');
  process.exit(2);
}
const SIZE = { kind, d: Number(width), blocks: 4, heads: Math.max(1, Number(width) >> 6) };
const TOKENS = 8192;
const ITEMS = 10_000;
const WARM = 2;
const MOST_CALLS = 4096;
const SHOWN = 9;

/** One build with its own learner. */
async function open(build) {
  const load = path => import(pathToFileURL(resolve(build, 'dist', path)).href);
  const { Device } = await load('native/device.js');
  const { Call } = await load('native/call.js');
  const { Learner } = await load('train/learner.js');
  const { buildDefinition } = await load('nn/build.js');
  const { resolveConfig } = await load('config/resolve.js');
  const { drawBatch, drawLengths } = await load('bench/random-batch.js');

  const lengths = drawLengths(TOKENS);
  const maxLength = Math.max(...lengths);
  const config = resolveConfig({
    model: { ...SIZE, maxLength },
    batch: { tokens: Math.max(TOKENS, maxLength) },
    optimizer: { table: 'lazy-adam' },
  });
  const device = Device.open();
  const shape = { definition: buildDefinition(config.model, 86_400), items: ITEMS, positions: maxLength + 1 };
  const learner = new Learner({
    device,
    config,
    shape: { ...shape, dropout: config.model.dropout, actions: 0, sideFeatures: [], scoring: config.loss },
    counts: new Int32Array(ITEMS).fill(1),
  });
  const batch = drawBatch(lengths, ITEMS);
  const clocks = device.tensor([1, MOST_CALLS], 'i64');
  const ops = clockEveryCall(Call, clocks);

  return {
    build,
    rounds: [],
    loss: Number.NaN,
    async step(step) {
      ops.length = 0;
      device.call('clock').number(0).tensor(clocks).submit();
      const { loss } = await learner.step([batch], { step, totalSteps: 1000 });
      const count = ops.length;
      this.loss = await loss;
      const at = Array.from(await device.read(clocks), Number);
      const ms = { total: 0 };
      for (let i = 1; i < count; i++) {
        const took = (at[i] - at[i - 1]) / 1e6;
        ms[ops[i]] = (ms[ops[i]] ?? 0) + took;
        ms.total += took;
      }
      if (step > WARM) this.rounds.push(ms);
    },
  };
}

/** Reads the clock after every op of a build, and names the ops in order. */
function clockEveryCall(Call, clocks) {
  const { start, submit } = Call.prototype;
  const ops = [];
  let op = '';
  Call.prototype.start = function (name) {
    op = name;
    return start.call(this, name);
  };
  Call.prototype.submit = function (stream) {
    submit.call(this, stream);
    ops.push(op);
    start
      .call(this, 'clock')
      .number(ops.length - 1)
      .tensor(clocks);
    submit.call(this, 'compute');
  };
  return ops;
}

const quantile = (values, q) => values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) * q)];

const sides = [];
for (const build of builds) sides.push(await open(build));
for (let step = 1; step <= WARM + Number(rounds); step++) {
  for (const side of step % 2 ? sides : sides.toReversed()) await side.step(step);
}

const [first] = sides;
const median = op =>
  quantile(
    first.rounds.map(ms => ms[op]),
    0.5,
  );
const ops = Object.keys(first.rounds[0]).sort((a, b) => median(b) - median(a));
console.log(''.padEnd(38) + builds.map(build => build.padEnd(30)).join(''));
for (const op of ops.slice(0, SHOWN)) {
  const cells = sides.map(({ rounds }) => {
    const ms = rounds.map(round => round[op]);
    const ratios = ms.map((took, i) => took / first.rounds[i][op]);
    const shown = [0.1, 0.5, 0.9].map(q => quantile(ms, q).toFixed(1)).join(' ');
    return `${shown} x${quantile(ratios, 0.5).toFixed(3)}`.padEnd(30);
  });
  console.log(op.padEnd(38) + cells.join(''));
}
console.log(`${'loss'.padEnd(38)}${sides.map(side => String(side.loss).padEnd(30)).join('')}`);
process.exit(0);
