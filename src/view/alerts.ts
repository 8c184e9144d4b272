// Alerts: problems of a run that the user should not have to search for, each with a remedy.

import type { RunView } from './run-view.js';

export interface Alert {
  kind:
    | 'not-finite'
    | 'failed'
    | 'stalled'
    | 'still-improving'
    | 'below-baseline'
    | 'refused-checkpoint'
    | 'damaged-log';
  level: 'error' | 'warning' | 'note';
  text: string;
  remedy: string;
}

/** Number of validations before a curve below a baseline is reported. */
const EARLY_VALIDATIONS = 3;

export function findAlerts(view: Omit<RunView, 'alerts'>, damagedLines = 0): Alert[] {
  return [
    ...failure(view),
    ...silence(view),
    ...belowBaseline(view),
    ...stillImproving(view),
    ...refusedCheckpoints(view),
    ...damagedLog(view, damagedLines),
  ];
}

/** Without those that the verdict in the same report covers. */
export function alertsBesideVerdict({ alerts, report }: RunView): Alert[] {
  return alerts.filter(({ kind }) => kind !== 'below-baseline' || !report?.verdict);
}

function failure({ state, reason, step }: Omit<RunView, 'alerts'>): Alert[] {
  if (state !== 'failed') return [];
  if (reason?.startsWith('diverged:')) {
    const remedy = 'Lower optimizer.lr, set optimizer.clip (1 is usual), or add warm-up steps; then train a new run.';
    return [{ kind: 'not-finite', level: 'error', text: `The loss is not finite after step ${step}.`, remedy }];
  }
  const remedy = 'Fix the cause, then continue with `npx turbogr resume`.';
  return [{ kind: 'failed', level: 'error', text: `Training failed after step ${step}: ${reason ?? ''}`, remedy }];
}

function silence({ state, path, updated, step }: Omit<RunView, 'alerts'>): Alert[] {
  if (state !== 'silent') return [];
  const text = `No sign of life since ${updated?.slice(0, 19).replace('T', ' ') ?? 'its start'} UTC (step ${step}).`;
  return [
    {
      kind: 'stalled',
      level: 'error',
      text,
      remedy: `If its process has ended, continue with: npx turbogr resume ${path}`,
    },
  ];
}

function belowBaseline({ state, validations, baselines, metric, report }: Omit<RunView, 'alerts'>): Alert[] {
  if (report?.verdict?.kind === 'behind') {
    const [text = '', ...rest] = report.verdict.lines.map(line => `${line[0]?.toUpperCase()}${line.slice(1)}.`);
    return [{ kind: 'below-baseline', level: 'warning', text, remedy: rest.join(' ') }];
  }
  if (report || !baselines || (state === 'running' && validations.length < EARLY_VALIDATIONS)) return [];
  const best = Math.max(...validations.map(({ value }) => value));
  const above = Object.entries(baselines).filter(([, value]) => value >= best);
  if (validations.length === 0 || above.length === 0) return [];
  const names = above.map(([name, value]) => `${name} (${value.toFixed(4)})`).join(', ');
  return [
    {
      kind: 'below-baseline',
      level: 'warning',
      text: `The best validation ${metric} so far, ${best.toFixed(4)}, is not above ${names}.`,
      remedy: 'Train more epochs, set priors: auto, or search for better settings with `npx turbogr tune`.',
    },
  ];
}

function stillImproving({ state, report, metric }: Omit<RunView, 'alerts'>): Alert[] {
  if (state !== 'finished' || !report?.stillImproving) return [];
  const text = `Validation ${metric} was still improving when training stopped.`;
  const epochs = 2 * Math.max(1, report.epoch);
  return [{ kind: 'still-improving', level: 'note', text, remedy: `Train longer: --epochs ${epochs}` }];
}

function refusedCheckpoints({ resumes }: Omit<RunView, 'alerts'>): Alert[] {
  return resumes.flatMap(({ refused, step }) =>
    refused.map(({ path, reason }): Alert => {
      const text = `A checkpoint was skipped when the run resumed at step ${step}: ${path}: ${reason}`;
      return {
        kind: 'refused-checkpoint',
        level: 'note',
        text,
        remedy: 'The steps since an older one were repeated.',
      };
    }),
  );
}

function damagedLog({ path }: Omit<RunView, 'alerts'>, lines: number): Alert[] {
  if (lines === 0) return [];
  const text = `${lines} lines of ${path}/events.jsonl are not events and were skipped.`;
  return [{ kind: 'damaged-log', level: 'note', text, remedy: 'Weights and checkpoints do not depend on this file.' }];
}
