// One rank's part of a training job: device, model and loop, then the test with the chosen weights, on all ranks together; on
// rank 0 also the report.

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Choice } from '../config/rules.js';
import type { ResolvedConfig } from '../config/schema.js';
import { blameStore } from '../data/store/damaged-store.js';
import type { SequenceStore } from '../data/store/sequence-store.js';
import { costOf } from '../dist/balance/cost.js';
import { gatherJson } from '../dist/comm/communicator.js';
import { formGroups } from '../dist/shard/rank-groups.js';
import { agreeOn, type Fingerprints, type Ranks } from '../dist/launch/join-ranks.js';
import { countItems } from '../eval/known-events.js';
import { findAddon } from '../native/addon.js';
import { Device } from '../native/device.js';
import { trustedCheckpoint } from '../train/checkpoint.js';
import { chosenCheckpoint } from '../train/chosen-weights.js';
import { Learner } from '../train/learner.js';
import { planSteps, plannedSteps } from '../train/plan-steps.js';
import type { RunDescription, RunFolder } from '../train/run-folder.js';
import { StepSampler } from '../train/step-sampler.js';
import { Trainer } from '../train/trainer.js';
import { writeFileAtomic } from '../util/atomic-file.js';
import { UserError } from '../util/errors.js';
import { sha256File } from '../util/hash.js';
import { RankFigures } from '../view/rank-figures.js';
import { writeReport } from '../view/write-report.js';
import { evaluateModel } from './evaluate.js';
import { countUntrained, readPreparedSummary, validationShare } from './left-out.js';
import { measurePeak } from './measure-peak.js';
import { settleRunPriors } from './priors.js';
import { saveRunRanks } from './run-ranks.js';
import { shapeModel } from './shape-model.js';
import { StepTrace, TRACED_STEPS } from './trace-steps.js';
import type { ResumeOptions } from './train-options.js';
import type { TrainReport } from './train-report.js';
import { validation } from './validation.js';
import { judge } from './verdict.js';

/** What rank 0 sends to the other ranks about the job. */
export interface SharedJob {
  description: RunDescription;
  store: string;
}

/** Trains and tests together with the other ranks; rank 0 writes. */
export async function runTraining(
  run: RunFolder,
  source: SequenceStore,
  options: ResumeOptions & { choices?: readonly Choice[]; test?: boolean; ranks: Ranks },
): Promise<TrainReport> {
  const { world } = options.ranks;
  const leads = world.rank === 0;
  const { config } = run.description;
  if (leads) {
    run.checkpoints().sweep();
    refuseIdleRanks(config, world.size);
    await gatherJson<SharedJob>(world, { description: run.description, store: resolve(source.folder) });
  }
  await agreeOn(world, fingerprintsOf(source));
  const stopVerifying = new AbortController();
  const verified = !leads || options.verify === false ? Promise.resolve() : source.verify(stopVerifying.signal);
  run.requireVerified(verified);
  const device = Device.open(config.threads === undefined ? {} : { threads: config.threads });
  try {
    const shape = shapeModel(config, source, options.model);
    const counts = countItems(source, config.trainOn === 'train' ? 'validation' : 'test');
    const groups = await formGroups(world, config.groupSize);
    const learner = new Learner({ device, config, shape, counts, groups, tableFolder: run.path });
    const peakFlops = leads ? await measurePeak(device) : 1;
    const plans = planSteps(
      source,
      config,
      costOf(length => shape.definition.flops(length)),
    );
    if (leads)
      options.onStart?.({
        run: run.path,
        config,
        choices: options.choices ?? [],
        model: run.description.model,
        fingerprint: source.fingerprint,
        users: source.users,
        items: source.items,
        prepared: readPreparedSummary(source.folder),
        ...countUntrained(source, config),
        tokensPerEpoch: plans.tokens,
        totalSteps: plannedSteps(plans, config),
        ...learner.model.counts,
        peakFlops,
      });
    const validate = validation(learner, source, config, groups);
    const [traced] = await gatherJson(world, options.trace !== undefined); // rank 0 decides
    const trace = traced ? await StepTrace.start(device, world) : undefined;
    const skip = trace ? TRACED_STEPS : 0;
    const sampler = new StepSampler({ device, held: () => learner.held(), world, skip });
    const ranks = new RankFigures();
    const trainer = new Trainer({
      run,
      source,
      learner,
      plans,
      world,
      peakFlops,
      initialWeights: () => initialWeights(run),
      ...validate,
      sample: step => sampler.after(step),
      onEvent: event => {
        trace?.see(event);
        if (event.kind === 'ranks') ranks.add(event);
        if (leads) options.onEvent?.(event);
      },
      ...(options.signal && { signal: options.signal }),
    });
    const { early, ...result } = await trainer.run();
    await trace?.write(leads ? options.trace : undefined);
    const done = result.reason !== 'interrupted';
    const { best } = early;
    if (done && best && best.step !== result.step) {
      const [path] = await gatherJson(world, leads ? resolve(chosenCheckpoint(run).path) : '');
      learner.takeEvaluated(trustedCheckpoint(path!));
    }
    await verified;
    const digest = await learner.digest(learner.evaluated);
    const { evaluated } = learner;
    const priors = done ? await settleRunPriors({ run, model: evaluated, source, config, ranks: groups }) : undefined;
    const weights = priors?.weights;
    const tested =
      done &&
      options.test !== false &&
      source.lengths.some((length, user) => length > source.split.validationEnd[user]!);
    const which = { source, config, part: 'test', ranks: groups } as const;
    const how = { model: evaluated, ...which, ...(weights && { priors: weights }) };
    const evaluation = tested ? await evaluateModel(how) : undefined;
    const test = evaluation?.report;
    if (evaluation && leads) saveRunRanks(run, evaluation, digest);
    const stillImproving = done && result.reason !== 'patience' && best !== null && early.waited === 0;
    const shares = ranks.view()?.shares;
    const heldOut = best ? validationShare(source, config) : 0;
    const judged = { store: source.folder, epochs: config.epochs, stillImproving, heldOut };
    const report: TrainReport = {
      run: run.path,
      ...result,
      best,
      metric: config.evaluation.metric,
      chosenOn: config.evaluation.on,
      stillImproving,
      digest,
      seed: config.seed,
      threads: device.stats().threads,
      parameters: learner.model.counts,
      ...(shares && { shares }),
      ...(priors && { priors }),
      ...(test && { test }),
      ...(leads && done && options.test !== false && { verdict: judge({ run: run.path, test, ...judged }) }),
    };
    if (leads) {
      writeFileAtomic(run.report, `${JSON.stringify(report, null, 2)}\n`);
      writeReport(run.path);
    }
    return report;
  } catch (error) {
    await verified; // a damaged store takes precedence over other errors
    if (leads && options.verify === false) return await blameStore(error, source);
    throw error;
  } finally {
    stopVerifying.abort();
    device.dispose();
  }
}

/** A rank without a lane would only wait. */
function refuseIdleRanks({ batch }: ResolvedConfig, ranks: number): void {
  if (batch.lanes >= ranks) return;
  throw new UserError(
    'few-lanes',
    `batch.lanes is ${batch.lanes}, and a step cannot be divided over ${ranks} ranks`,
    `Give --set batch.lanes=${ranks} or more: the result depends on lanes, never on ranks, so choose them for the largest number of ranks you plan to use.`,
  );
}

/** What all ranks must have in common. The config is rank 0's. */
function fingerprintsOf(source: SequenceStore): Fingerprints {
  return { store: source.fingerprint, code: sha256File(findAddon().path), node: process.version };
}

/** Exported weights to start from; must be those with which the run was created. */
function initialWeights(run: RunFolder): string | undefined {
  const { initialWeights: given } = run.description;
  if (!given) return undefined;
  const file = run.find(given.place);
  if (!existsSync(file) || sha256File(file) !== given.sha256) {
    throw new UserError(
      'other-weights',
      `${file} ${existsSync(file) ? 'is no longer the file' : 'is gone, the file'} that ${run.path} was to start from`,
      'Restore the file, or train a new run with another --run folder.',
    );
  }
  return resolve(file);
}
