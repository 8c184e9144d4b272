// The events that a run logs once: at its start, and when it fails.

import type { ModelConfig } from '../config/schema.js';
import type { SequenceSource } from '../data/sequence-source.js';
import type { Failed, MachineFacts, RunStarted } from '../events/event.js';
import type { Model } from '../nn/model.js';
import { paperFlops } from '../nn/paper-flops.js';
import { UserError } from '../util/errors.js';
import { machineFacts } from '../util/machine-facts.js';
import type { Learner } from './learner.js';
import type { RunFolder } from './run-folder.js';
import type { StepPlans } from './step-plan.js';
import type { FlopCounts } from './step-size.js';

export interface DescribedRun {
  run: RunFolder;
  source: SequenceSource;
  learner: Learner;
  plans: StepPlans;
  peakFlops: number;
}

export function describeRun({ run, source, learner, plans, peakFlops }: DescribedRun, totalSteps: number): RunStarted {
  const { users, items, fingerprint } = source;
  const { denseParameters, tableParameters } = learner.model.counts;
  return {
    kind: 'run',
    step: 0,
    data: { users, items, trainTokens: plans.tokens, fingerprint },
    model: { kind: learner.model.definition.kind, denseParameters, tableParameters },
    config: run.description.config,
    ...computedOn(learner),
    totalSteps,
    peakFlops,
  };
}

export function computedOn({ model }: Learner): { threads: number; machine: MachineFacts } {
  const { threads, isa } = model.device.stats();
  return { threads, machine: { ...machineFacts(), isa } };
}

export function describeFailure(error: unknown, step: number): Failed {
  const message = error instanceof Error ? error.message : String(error);
  return { kind: 'failed', step, code: error instanceof UserError ? error.code : 'bug', message };
}

export function flopCounts({ definition, counts }: Model, { d, blocks }: ModelConfig): FlopCounts {
  const { kind } = definition;
  const paper = paperFlops({ kind, d, blocks, parameters: counts.blockParameters });
  return { useful: n => definition.flops(n), paper };
}
