import { expect, test } from 'vitest';
import { COMPONENTS, FEATURES } from '../../src/config/prior-weights.js';
import { namedWeights } from '../../src/eval/priors/weights.js';
import type { EvaluationReport } from '../../src/eval/report.js';
import { verdict } from '../../src/eval/verdict.js';

function report(model: number, markov: number, more: Partial<EvaluationReport> = {}): EvaluationReport {
  const metrics = (value: number) => ({ 'hr@10': { value, margin: 0 }, 'ndcg@10': { value: value / 2, margin: 0 } });
  return {
    part: 'test',
    fingerprint: 'x',
    split: 'leave-one-out',
    exclude: 'none',
    users: 100,
    items: 10,
    cases: 100,
    excludedTargets: 0,
    repeatedTargets: 0,
    selfTargets: 0.01,
    selfFirst: 0.01,
    metrics: { model: metrics(model), 'first-order Markov': metrics(markov) },
    lists: { k: 10, coverage: 1, popularShare: 1, popularShareOfTargets: 1 },
    seconds: 1,
    ...more,
  };
}

test('a model above the baselines is said to be so', () => {
  expect(verdict(report(0.3, 0.2))).toEqual({ wins: true, lines: ['the model is above every baseline'] });
});

test('a model below one says which, by how much, and what to try', () => {
  const { wins, lines } = verdict(report(0.2, 0.3));
  expect(wins).toBe(false);
  expect(lines[0]).toContain('first-order Markov: hr@10 0.2000 against 0.3000, ndcg@10 0.1000 against 0.1500');
  expect(lines[1]).toContain('priors: auto');
  expect(verdict(report(0.2, 0.3), { stillImproving: true }).lines[1]).toContain('still improving');
  expect(verdict(report(0.2, 0.3, { excludedTargets: 50 })).lines[1]).toContain('evaluation.exclude: none');
});

test('a difference within the interval of the model is said to be so', () => {
  const { metrics } = report(0.2, 0.21);
  const withMargin = (margin: number) => ({
    metrics: { ...metrics, model: { 'hr@10': { value: 0.2, margin }, 'ndcg@10': { value: 0.1, margin } } },
  });
  expect(verdict(report(0.2, 0.21, withMargin(0.02))).lines[0]).toMatch(/against 0\.1050 \(within the interval\)$/);
  expect(verdict(report(0.2, 0.21, withMargin(0.007))).lines[0]).not.toContain('interval');
});

test('an equal figure is no win', () => {
  expect(verdict(report(0.2, 0.2)).wins).toBe(false);
});

test('a model that recommends what was just seen is told so', () => {
  expect(verdict(report(0.3, 0.2, { selfFirst: 0.985 })).lines[1]).toContain('98.5 %');
  expect(verdict(report(0.3, 0.2, { selfFirst: 0.3, selfTargets: 0.25 })).lines).toHaveLength(1);
  expect(verdict(report(0.3, 0.2, { selfFirst: 0.985, exclude: 'history' })).lines).toHaveLength(1);
});

test('a ranking that is the blend is said to be so, and not to lose to itself', () => {
  const weights = (model: number) =>
    namedWeights(
      Float64Array.from(FEATURES, name => (name === 'model' ? model : 1)),
      new Float64Array(COMPONENTS.length),
    );
  const { metrics } = report(0.3, 0.2);
  const more = (model: number) => ({ metrics: { ...metrics, blend: metrics['model']! }, priors: weights(model) });
  const blend = verdict(report(0.3, 0.2, more(0)));
  expect(blend.wins).toBe(true);
  expect(blend.lines[1]).toContain('the network adds nothing');
  expect(verdict(report(0.3, 0.2, more(0.5))).wins).toBe(false);
});
