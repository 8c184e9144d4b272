import { expect, test } from 'vitest';
import type { EvaluationReport } from '../../src/eval/report.js';
import { validationShare } from '../../src/jobs/left-out.js';
import { judge } from '../../src/jobs/verdict.js';
import { toyConfig } from './toy-run.js';

function report(more: Partial<EvaluationReport> = {}, model = 0.3): EvaluationReport {
  const metrics = (value: number) => ({ 'hr@10': { value, margin: 0 }, 'ndcg@10': { value: value / 2, margin: 0 } });
  return {
    part: 'test',
    fingerprint: 'x',
    split: 'leave-one-out',
    exclude: 'history',
    users: 100,
    items: 10,
    cases: 100,
    excludedTargets: 0,
    repeatedTargets: 0,
    selfTargets: 0,
    selfFirst: 0,
    metrics: { model: metrics(model), 'first-order Markov': metrics(0.2) },
    lists: { k: 10, coverage: 1, popularShare: 1, popularShareOfTargets: 1 },
    seconds: 1,
    ...more,
  };
}

const perfect = { model: { mrr: { value: 1, margin: 0 } }, recency: { mrr: { value: 1, margin: 0 } } };

test.each([
  ['nothing was held out', undefined, 'untested'],
  ['there are no cases', report({ cases: 0 }), 'untested'],
  ['there is one item', report({ items: 1 }), 'one-item'],
  ['there is one user', report({ users: 1, cases: 1 }), 'one-user'],
  ['every target is left out of the ranking', report({ excludedTargets: 100 }), 'all-excluded'],
  ['a baseline finds everything', report({ metrics: perfect }), 'nothing-to-gain'],
  ['the model is behind Markov', report({}, 0.1), 'behind'],
  ['the model is ahead', report(), 'ahead'],
] as const)('when %s, a sentence says what that means and what to do next', (_, test, kind) => {
  const verdict = judge({ run: 'runs/x', test, store: 'runs/x/store', epochs: 4 });
  expect(verdict.kind).toBe(kind);
  expect(verdict.lines.length).toBeGreaterThan(0);
  expect(verdict.next).toContain('npx turbogr');
});

test.each([
  [{ stillImproving: true }, {}, 'npx turbogr train runs/x/store --run runs/x-longer --set epochs=8'],
  [{}, {}, 'npx turbogr train runs/x/store --run runs/x-priors --set priors=auto'],
  [{ heldOut: 0.3 }, {}, 'npx turbogr refit runs/x'],
  [{}, { excludedTargets: 40 }, 'npx turbogr evaluate runs/x --exclude none'],
] as const)('a model that is behind gets the command of its remedy (%j, %j)', (more, of, next) => {
  const judged = judge({ run: 'runs/x', test: report(of, 0.1), store: 'runs/x/store', epochs: 4, ...more });
  expect(judged.next).toContain(next);
});

test('a model that is ahead is told of many validation events that it did not learn from, not of few', () => {
  const lines = (heldOut: number) =>
    judge({ run: 'runs/x', test: report(), store: 'runs/x/store', epochs: 4, heldOut }).lines;
  expect(lines(0.3)).toEqual(['the model is above every baseline', expect.stringContaining('npx turbogr refit')]);
  expect(lines(0.02)).toHaveLength(1);
});

test('validation events are counted per training pair', () => {
  // Five pairs from users of 4, 3 and 1 training events; the last user is held out as a whole, its first event is an input.
  const split = { kind: 'x', trainEnd: Int32Array.of(4, 3, 1, 0), validationEnd: Int32Array.of(5, 4, 2, 3) };
  expect(validationShare({ split, users: 4 }, toyConfig())).toBe(5 / 5);
  expect(validationShare({ split, users: 2 }, toyConfig())).toBe(2 / 5);
  expect(validationShare({ split, users: 2 }, toyConfig({ trainOn: 'train+validation' }))).toBe(0);
});
