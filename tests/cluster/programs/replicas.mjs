// Ranks in groups of two that train a few steps; before step 3 one of them gets one wrong number in what it holds.
//
//   replicas.mjs <store> <rank> <sampled-softmax: the table is divided | full-softmax: every rank has all of it>
import { parseAssignments, resolveConfig } from '../../../dist/config/resolve.js';
import { BatchBuffer } from '../../../dist/data/batch/batch-buffer.js';
import { SequenceStore } from '../../../dist/data/store/sequence-store.js';
import { costOf } from '../../../dist/dist/balance/cost.js';
import { withRanks } from '../../../dist/dist/launch/rank-life.js';
import { formGroups } from '../../../dist/dist/shard/rank-groups.js';
import { countItems } from '../../../dist/eval/known-events.js';
import { shapeModel } from '../../../dist/jobs/shape-model.js';
import { Device } from '../../../dist/native/device.js';
import { Learner } from '../../../dist/train/learner.js';
import { planSteps } from '../../../dist/train/plan-steps.js';

const [store, wrong, loss] = [process.argv[2], Number(process.argv[3]), process.argv[4]];
const SETTINGS = [
  'model.d=16',
  'model.blocks=1',
  'model.maxLength=50',
  'batch.tokens=120',
  'batch.lanes=4',
  `loss.kind=${loss}`,
  'loss.negatives.count=4',
  'optimizer.table=lazy-adam',
  'checkReplicas=2',
];

await withRanks(async ({ world }) => {
  const config = resolveConfig(parseAssignments(SETTINGS));
  const source = SequenceStore.open(store);
  const device = Device.open({ threads: 1 });
  const shape = shapeModel(config, source);
  const groups = await formGroups(world, 2);
  const learner = new Learner({ device, config, shape, counts: countItems(source, 'validation'), groups });
  const plans = planSteps(
    source,
    config,
    costOf(length => shape.definition.flops(length)),
  );
  let cursor = { epoch: 0, position: 0 };
  for (let step = 1; step <= 6; step++) {
    if (step === 3 && world.rank === wrong) await spoil(learner.model.items);
    const plan = plans.at(cursor);
    cursor = plan.next;
    const { from, to } = learner.lanes;
    const batches = plan.lanes.map((ids, lane) =>
      ids.length > 0 && lane >= from && lane < to ? new BatchBuffer(source, plans.windows).fill(ids) : undefined,
    );
    const { figures } = await learner.step(batches, { step, totalSteps: 6, laneTokens: plan.laneTokens });
    await figures;
    if (world.rank === 0) process.stdout.write(`step ${step}\n`);
  }

  async function spoil({ value }) {
    const data = await device.read(value);
    data[data.length - 1] += 2 ** -20;
    device.upload(value, data);
  }
});
