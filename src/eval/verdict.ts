// The verdict of a report in words: whether the model beats the baselines, and what to try otherwise.

import type { EvaluationReport } from './report.js';

/** The decisive metrics, if the report has them. */
const DECISIVE = ['hr@1', 'hr@10', 'ndcg@10'];
/** Recommending the last item again is a fault beyond this multiple of the true frequency, from this share of cases on. */
const SELF_EXCESS = 3;
const SELF_SHARE = 0.2;
/** Validation events per pair that the model learned from: above it, training on them too is worth a second run. */
const HELD_OUT = 0.1;

export interface BaselineVerdict {
  /** Every decisive metric is above every baseline. */
  wins: boolean;
  /** Sentences to print, at least one. */
  lines: string[];
  /** The most likely remedy, if the model does not win. */
  remedy?: Remedy;
}

export type Remedy = 'epochs' | 'refit' | 'exclude' | 'priors' | 'tune';

const REMEDIES: Record<Remedy, string> = {
  epochs: 'validation was still improving when training stopped; raise epochs',
  refit: 'many events were held out for validation; `npx turbogr refit` trains on them too',
  exclude: 'many targets are repeats and excluded from the ranking; set evaluation.exclude: none',
  priors: "set priors: auto, which adds what the baselines know to the model's logits",
  tune: 'search for better settings with `npx turbogr tune`',
};

/** What is known of the run besides its test. */
export interface Training {
  /** The last validation of the run was its best. */
  stillImproving?: boolean;
  /** Validation events per pair that the model learned from. */
  heldOut?: number;
}

export function verdict(report: EvaluationReport, training: Training = {}): BaselineVerdict {
  const { model, 'model alone': _part, ...baselines } = report.metrics;
  const isBlend = report.priors?.features.model === 0;
  const lost: string[] = [];
  for (const [name, metrics] of Object.entries(baselines)) {
    if (isBlend && name === 'blend') continue;
    const below = DECISIVE.filter(
      metric => model?.[metric] && metrics[metric] && model[metric].value <= metrics[metric].value,
    );
    if (below.length > 0) {
      const figures = below.map(m => `${m} ${model![m]!.value.toFixed(4)} against ${metrics[m]!.value.toFixed(4)}`);
      const isNoise = below.every(m => metrics[m]!.value - model![m]!.value <= model![m]!.margin);
      const within = isNoise ? ' (within the interval)' : '';
      lost.push(`the model is not above ${describe(name)}: ${figures.join(', ')}${within}`);
    }
  }
  const wins = lost.length === 0;
  const remedy = likelyRemedy(report, training);
  const lines = wins ? ['the model is above every baseline'] : [...lost, `likely remedy: ${REMEDIES[remedy]}`];
  if (wins && remedy === 'refit') lines.push(REMEDIES.refit);
  if (isBlend)
    lines.push(
      'on validation the network adds nothing to the blend of the baselines, so that blend is used for ranking',
    );
  const { exclude, selfFirst, selfTargets } = report;
  // If the history is excluded from the ranking, it is never recommended.
  if (exclude === 'none' && selfFirst > SELF_SHARE && selfFirst > SELF_EXCESS * selfTargets) {
    lines.push(
      `it ranks the item just seen first in ${percent(selfFirst)} of the cases, where ${percent(selfTargets)} of the targets are: ` +
        (report.priors ? REMEDIES.tune : 'set priors: auto, or loss.kind: full-softmax'),
    );
  }
  return { wins, lines, ...(!wins && { remedy }) };
}

function describe(baseline: string): string {
  return baseline === 'blend' ? 'the blend of the baselines' : baseline;
}

function likelyRemedy(report: EvaluationReport, { stillImproving = false, heldOut = 0 }: Training): Remedy {
  if (stillImproving) return 'epochs';
  if (heldOut > HELD_OUT) return 'refit';
  if (report.excludedTargets > 0.1 * report.cases) return 'exclude';
  return report.priors ? 'tune' : 'priors';
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}
