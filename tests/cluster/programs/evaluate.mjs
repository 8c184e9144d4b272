// Ranks that evaluate the same model in many ways, one after the other: on some of them, in groups of a size. Rank 0 prints a
// line of JSON for each way: what validation, baselines, priors and test found, and the most that a rank held.
//
//   evaluate.mjs <ways as JSON: [{ name, store, ranks, groupSize, settings }]>
import { parseAssignments, resolveConfig } from '../../../dist/config/resolve.js';
import { SequenceStore } from '../../../dist/data/store/sequence-store.js';
import { gatherJson } from '../../../dist/dist/comm/communicator.js';
import { countItems } from '../../../dist/eval/known-events.js';
import { fitPriors } from '../../../dist/eval/priors/fit-priors.js';
import { evaluateModel } from '../../../dist/jobs/evaluate.js';
import { shapeModel } from '../../../dist/jobs/shape-model.js';
import { validation } from '../../../dist/jobs/validation.js';
import { Device } from '../../../dist/native/device.js';
import { Learner } from '../../../dist/train/learner.js';
import { eachWay } from './each-way.mjs';

await eachWay(JSON.parse(process.argv[2]), evaluate);

async function evaluate(groups, { store, settings }) {
  const source = SequenceStore.open(store);
  const config = resolveConfig(parseAssignments(settings));
  const { exclude, targets } = config.evaluation;
  const device = Device.open({ threads: 1 });
  const shape = shapeModel(config, source);
  const learner = new Learner({ device, config, shape, counts: countItems(source, 'validation'), groups });
  const model = learner.evaluated;
  const { maxLength } = model.definition;
  const before = device.stats().reservedBytes;
  const { validate, baselines } = validation(learner, source, config, groups);
  const value = await validate(model);
  const validated = device.stats().reservedBytes;
  const fitted = await fitPriors({ device, source, maxLength, exclude, targets, ranked: model, metric: 'mrr', ranks: groups });
  const how = { source, config, part: 'test', priors: fitted.weights, segments: true, ranks: groups };
  const { report, ranks: found } = await evaluateModel({ model, ...how });
  const tested = device.stats().reservedBytes;
  const { seconds: _, ...figures } = report;
  const result = { value, baselines: await baselines?.(), fitted, figures, found: [...found.ranks] };
  device.dispose();
  const all = await gatherJson(groups.world, {
    same: JSON.stringify(result),
    bytes: { validation: validated - before, test: tested - before },
    rows: model.items.value.rows,
  });
  const most = of => Math.max(...all.map(of));
  return {
    result,
    agreed: all.every(({ same }) => same === all[0].same),
    held: {
      rows: most(({ rows }) => rows),
      validation: most(({ bytes }) => bytes.validation),
      test: most(({ bytes }) => bytes.test),
    },
  };
}
