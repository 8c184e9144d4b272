// Ranks that train the same small model in many ways, one after the other: on some of them, in groups of a size, overlapped
// or not, with rows fetched ahead or not. Rank 0 prints a line of JSON for each way: its name, losses and digest, the bytes
// of optimiser state on each rank, by how many microseconds a rank's first gradients and its first updated parameters left
// before its backward ended, in how many steps rows were sent again before the gradients of the others, whether gradients were
// sent as factors, and the bytes of tensors that each rank has reserved. A way may have more `items` than the store.
//
//   equality.mjs <store> <steps> <ways as JSON: [{ name, ranks, groupSize, threads, settings, items? }]>
import { resolveConfig, parseAssignments } from '../../../dist/config/resolve.js';
import { BatchBuffer } from '../../../dist/data/batch/batch-buffer.js';
import { SequenceStore } from '../../../dist/data/store/sequence-store.js';
import { costOf } from '../../../dist/dist/balance/cost.js';
import { gatherJson } from '../../../dist/dist/comm/communicator.js';
import { countItems } from '../../../dist/eval/known-events.js';
import { shapeModel } from '../../../dist/jobs/shape-model.js';
import { Device } from '../../../dist/native/device.js';
import { Learner } from '../../../dist/train/learner.js';
import { planSteps } from '../../../dist/train/plan-steps.js';
import { STAGES } from '../../../dist/train/stages.js';
import { eachWay } from './each-way.mjs';

const [store, steps, ways] = [process.argv[2], Number(process.argv[3]), JSON.parse(process.argv[4])];
const source = SequenceStore.open(store);
await eachWay(ways, train);

async function train(groups, { threads, settings, items }) {
  const config = resolveConfig(parseAssignments(settings));
  const device = Device.open({ threads });
  const own = shapeModel(config, source);
  const shape = { ...own, items: items ?? own.items };
  const counts = new Int32Array(shape.items);
  counts.set(countItems(source, 'validation'));
  const learner = new Learner({ device, config, shape, counts, groups });
  const plans = planSteps(
    source,
    config,
    costOf(length => shape.definition.flops(length)),
  );
  const { from, to } = learner.lanes;
  const opened = [];
  let cursor = { epoch: 0, position: 0 };
  const figures = [];
  let [lead, updateLead] = [Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY];
  let parted = 0;
  let factors = false;
  let between = 0;
  device.recordSpans(true);
  for (let step = 1; step <= steps; step++) {
    for (let next = step + opened.length; opened.length <= learner.ahead && next <= steps; next++) {
      const plan = plans.at(cursor);
      cursor = plan.next;
      const read = (ids, lane) =>
        ids.length > 0 && lane >= from && lane < to ? new BatchBuffer(source, plans.windows).fill(ids) : undefined;
      const place = { step: next, totalSteps: steps, laneTokens: plan.laneTokens };
      opened.push(learner.open(plan.lanes.map(read), place));
    }
    figures.push(await (await learner.run(opened.shift())).figures);
    await device.sync();
    const { spans } = device.spans();
    lead = Math.max(lead, leadOf(spans, 'comm_all_to_all_v'));
    updateLead = Math.max(updateLead, leadOf(spans, 'comm_all_gather_v'));
    factors ||= spans.some(({ op }) => op === 'local_ids');
    const first = firstSums(spans);
    parted += first ? 1 : 0;
    between = Math.max(between, first?.length ?? 0);
  }
  const losses = figures.map(({ loss }) => loss);
  const changed = figures.map(({ rows }) => rows);
  const digest = await learner.digest(learner.evaluated);
  const state = await gatherJson(groups.figures, learner.held()['optimiser state']);
  const finite = x => (Number.isFinite(x) ? x : null);
  const leads = await gatherJson(groups.figures, finite(lead));
  const updateLeads = await gatherJson(groups.figures, finite(updateLead));
  const reserved = await gatherJson(groups.figures, device.stats().reservedBytes);
  device.dispose();
  return { digest, losses, changed, state, leads, updateLeads, parted, between, factors, reserved };
}

/** From the first exchange of dense gradients, or of updated parameters, to the end of backward. */
function leadOf(spans, exchange) {
  const of = (stream, stage) => spans.filter(span => span.stream === stream && span.stage === STAGES.indexOf(stage));
  const sent = of('comm', 'apply').filter(({ op }) => op === exchange);
  return Math.max(...of('compute', 'dense').map(({ end }) => end)) - Math.min(...sent.map(({ start }) => start));
}

/** The exchanges of row gradients before rows are sent again, if other gradients follow these. */
function firstSums(spans) {
  const sent = spans.filter(({ stream }) => stream === 'comm').sort((a, b) => a.start - b.start);
  const stages = sent.map(({ stage }) => STAGES[stage]);
  const between = stages.slice(stages.indexOf('reduce'), stages.lastIndexOf('reduce'));
  return between.includes('rows') ? between.slice(0, between.indexOf('rows')) : undefined;
}
