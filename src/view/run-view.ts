// The state of a run for reports and dashboard: what it is, its progress, how it ended. Plain data, derived from the run's
// folder alone.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { BaselinesRanked, EpochDone, MachineFacts, Resumed, StepsSampled, Validated } from '../events/event.js';
import { type RunDescription, RunFolder } from '../train/run-folder.js';
import { UserError } from '../util/errors.js';
import { type Alert, findAlerts } from './alerts.js';
import { EventTail } from './event-tail.js';
import { type FinalReport, readFinalReport } from './final-report.js';
import type { RankView } from './rank-figures.js';
import { RunLog } from './run-log.js';
import type { NegativeSeries, RowsAhead, StepSeries } from './step-columns.js';

/** `silent`: not ended, and no event for much longer than any pause so far. */
export type RunState = 'starting' | 'running' | 'silent' | 'finished' | 'interrupted' | 'failed';

/** Breakdown of wall time in seconds. `other`: start-up, downtime, steps that were lost and repeated. */
export interface TimeSpent {
  wall: number;
  training: number;
  validation: number;
  checkpoints: number;
  other: number;
}

export interface RunView {
  path: string;
  state: RunState;
  started: string | null;
  updated: string | null;
  model: string;
  config: Record<string, unknown>;
  fingerprint: string;
  digest: string | null;
  /** Why it ended. */
  reason: string | null;
  data: { users: number; items: number; trainTokens: number } | null;
  parameters: { dense: number; table: number } | null;
  machine: MachineFacts | null;
  threads: number | null;
  peakFlops: number | null;
  step: number;
  totalSteps: number | null;
  epoch: number;
  epochs: number;
  metric: string;
  steps: StepSeries;
  negatives: NegativeSeries;
  rowsAhead: RowsAhead;
  /** Tokens of the fullest rank relative to the mean, minus 1; mean over steps, null for a single rank. */
  tokenSpread: number | null;
  /** Null before the first sample, and for logs of earlier versions. */
  ranks: RankView | null;
  epochSeries: Pick<EpochDone, 'epoch' | 'step' | 'loss' | 'tokens' | 'seconds' | 'mfu'>[];
  validations: Pick<Validated, 'epoch' | 'step' | 'value' | 'best'>[];
  baselines: BaselinesRanked['values'] | null;
  /** The newest sample of steps, one per rank. */
  samples: Omit<StepsSampled, 'spans'>[];
  /** Step of the newest spans, which are requested separately. */
  spansAt: number | null;
  resumes: (Resumed & { time: string })[];
  checkpoints: { count: number; last: string | null };
  time: TimeSpent;
  report: FinalReport | null;
  alerts: Alert[];
}

/** Minimum time without events before a run is called silent. */
const SHORTEST_SILENCE = 60_000;
const SILENCE_FACTOR = 5;

/** Opens a run for repeated viewing. */
export class RunViewer {
  readonly run: RunFolder;
  readonly #tail: EventTail;
  #log = new RunLog();
  /** Incremented whenever something was read. */
  version = 0;

  constructor(path: string) {
    this.run = RunFolder.open(path);
    this.#tail = new EventTail(this.run.events);
  }

  /** Reads new events; returns whether there were any. */
  refresh(): boolean {
    const { replaced, events, damaged } = this.#tail.read();
    if (replaced) this.#log = new RunLog();
    for (const event of events) this.#log.add(event);
    this.#log.damaged += damaged;
    if (replaced || events.length > 0) this.version++;
    return replaced || events.length > 0;
  }

  spans(): StepsSampled[] {
    return [...this.#log.spans.values()];
  }

  view(now = Date.now()): RunView {
    const { run } = this;
    return describe(run.path, run.description, this.#log, { report: readFinalReport(run.report), now });
  }
}

/** A run as it is now. */
export function viewRun(path: string): RunView {
  if (!existsSync(join(path, 'events.jsonl'))) {
    RunFolder.open(path); // throws if the folder holds no run
    throw new UserError('no-events', `${path} has not trained yet: it has no events.jsonl`, 'Train it first.');
  }
  const viewer = new RunViewer(path);
  viewer.refresh();
  return viewer.view();
}

function describe(
  path: string,
  { config, model, fingerprint }: RunDescription,
  log: RunLog,
  { report, now }: { report: FinalReport | undefined; now: number },
): RunView {
  const { run, steps, finished, failed } = log;
  const state = stateOf(log, now);
  const ended = state === 'finished';
  const view: Omit<RunView, 'alerts'> = {
    path,
    state,
    started: isoTime(log.firstTime),
    updated: isoTime(log.lastTime),
    model,
    config,
    fingerprint,
    digest: (ended ? report?.digest : undefined) ?? finished?.digest ?? null,
    reason: finished?.reason ?? (failed ? `${failed.code}: ${failed.message}` : null),
    data: run ? { users: run.data.users, items: run.data.items, trainTokens: run.data.trainTokens } : null,
    parameters: run ? { dense: run.model.denseParameters, table: run.model.tableParameters } : null,
    machine: log.resumes.at(-1)?.machine ?? run?.machine ?? null,
    threads: log.resumes.at(-1)?.threads ?? run?.threads ?? null,
    peakFlops: run?.peakFlops ?? null,
    step: steps.step.at(-1) ?? 0,
    totalSteps: run?.totalSteps ?? null,
    epoch: (log.epochs.at(-1)?.epoch ?? -1) + 1,
    epochs: config.epochs,
    metric: config.evaluation.metric,
    steps: steps.series(),
    negatives: steps.negativeSeries(),
    rowsAhead: steps.rowsAhead(),
    tokenSpread: steps.tokenSpread(),
    ranks: log.ranks.view() ?? null,
    epochSeries: log.epochs.map(({ epoch, step, loss, tokens, seconds, mfu }) => {
      return { epoch, step, loss, tokens, seconds, mfu };
    }),
    validations: log.validations.map(({ epoch, step, value, best }) => ({ epoch, step, value, best })),
    baselines: log.baselines?.values ?? null,
    samples: [...log.samples.values()].map(({ spans: _spans, ...sample }) => sample),
    spansAt: [...log.spans.values()].at(-1)?.step ?? null,
    resumes: log.resumes,
    checkpoints: { count: log.checkpoints.length, last: log.checkpoints.at(-1)?.time ?? null },
    time: timeSpent(log),
    report: (ended && report) || null,
  };
  return { ...view, alerts: findAlerts(view, log.damaged) };
}

function stateOf(log: RunLog, now: number): RunState {
  if (log.failed) return 'failed';
  if (log.finished) return log.finished.reason === 'interrupted' ? 'interrupted' : 'finished';
  if (Number.isNaN(log.lastTime)) return 'starting';
  const patience = Math.max(SHORTEST_SILENCE, SILENCE_FACTOR * log.longestGap);
  return now - log.lastTime > patience ? 'silent' : 'running';
}

function timeSpent(log: RunLog): TimeSpent {
  const wall = Number.isNaN(log.firstTime) ? 0 : (log.lastTime - log.firstTime) / 1000;
  const training = log.steps.seconds.reduce((sum, seconds) => sum + seconds, 0);
  const { validationSeconds: validation, checkpointSeconds: checkpoints } = log;
  const other = Math.max(0, wall - training - validation - checkpoints);
  return { wall: Math.max(wall, training + validation + checkpoints), training, validation, checkpoints, other };
}

function isoTime(time: number): string | null {
  return Number.isNaN(time) ? null : new Date(time).toISOString();
}
