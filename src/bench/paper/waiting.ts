// Load balance, measured: the 16 lanes of one step of a small HSTU, computed one after the other on this machine.

import { costOf, waitingShare } from '../../dist/balance/cost.js';
import { reallocate } from '../../dist/balance/reallocate.js';
import { Device } from '../../native/device.js';
import { Random } from '../../util/random.js';
import { formatCount, formatShare } from '../../util/terminal.js';
import { openLearner, paperCase } from '../step.js';
import { type Population, POPULATIONS, RANKS } from './populations.js';
import type { PaperRow, Section, SectionOptions } from './row.js';
import { laneBatch, timeLanes } from './time-lanes.js';

/** Total tokens that a rank computes, over a few rounds. */
const TOKENS = { quick: 16_384, whole: 40_960 };

export const waiting: Section = {
  id: 'waiting',
  title: 'Load balance over 16 ranks (measured)',
  about:
    'One step of HSTU-tiny: every rank was computed alone on this machine; the slowest determines the step. Other load on the machine counts as waiting.',
  parts: POPULATIONS.map(population => ({
    id: population.name,
    measure: options => measured(population, options),
  })),
};

async function measured(population: Population, { quick, threads }: SectionOptions): Promise<PaperRow[]> {
  const { name, maxLength, measuredTokens, paper } = population;
  using device = Device.open(threads === undefined ? {} : { threads });
  const model = { ...paperCase('hstu-tiny'), tokens: measuredTokens };
  const { learner, definition } = openLearner(device, model, maxLength);
  const lengths = oneStep(population, RANKS * measuredTokens);
  const owners = [
    lengths.map((_, i) => Math.floor((i * RANKS) / lengths.length)),
    reallocate(
      lengths,
      RANKS,
      costOf(n => definition.flops(n)),
    ),
  ];
  const dealt = owners.map(owner =>
    Array.from({ length: RANKS }, (_, rank) => [...lengths].filter((_length, i) => owner[i] === rank)),
  );
  const rounds = Math.ceil(TOKENS[quick ? 'quick' : 'whole'] / measuredTokens);
  const times: { slowest: number; waiting: number; delay: number }[] = [];
  for (const lanes of dealt) {
    const batches = lanes.map(lane => laneBatch(lane, lane, model.items));
    const steps = (await timeLanes(device, learner, batches, rounds)).map(({ step }) => step);
    const [slowest, waiting] = [Math.max(...steps), waitingShare(Float64Array.from(steps))];
    times.push({ slowest, waiting, delay: slowest * waiting });
  }
  const [before, after] = [times[0]!, times[1]!];
  return [
    {
      name: `${name}: waiting, fixed -> reallocated`,
      paper: paper.waiting,
      ours: `${formatShare(before.waiting)} -> ${formatShare(after.waiting)}`,
      figures: { fixed: before.waiting, reallocated: after.waiting },
    },
    {
      name: `${name}: step, fixed -> reallocated`,
      paper: paper.step,
      ours: `${formatCount(before.slowest)} -> ${formatCount(after.slowest)} ms (${(before.slowest / after.slowest).toFixed(2)}x)`,
      figures: { fixed_ms: before.slowest, reallocated_ms: after.slowest },
    },
    {
      name: `${name}: waiting of the average rank, fixed -> reallocated`,
      ...(paper.delay !== undefined && { paper: paper.delay }),
      ours: `${formatCount(before.delay)} -> ${formatCount(after.delay)} ms`,
      figures: { fixed_ms: before.delay, reallocated_ms: after.delay },
    },
  ];
}

/** Sequences of one global batch, drawn from the population. */
function oneStep(population: Population, tokens: number): Int32Array {
  const { maxLength } = population;
  const lengths = population.lengths();
  const random = new Random(1, 'balance step');
  const drawn: number[] = [];
  for (let sum = 0; sum < tokens; sum += drawn.at(-1)!) {
    drawn.push(Math.min(maxLength, lengths[random.below(lengths.length)]!));
  }
  return Int32Array.from(drawn);
}
