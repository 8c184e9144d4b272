// Shows a run on the terminal: its start, progress and result. The first signal finishes the step and writes a checkpoint; a
// second one ends the process, which loses only the steps since the last checkpoint.
import type { Progress } from '../data/prepare/options.js';
import { launchedRank } from '../dist/launch/join-ranks.js';
import type { RunEvent } from '../events/event.js';
import type { TrainReport, TrainStart } from '../jobs/train-report.js';
import { ProgressView } from '../train/progress.js';
import { UserError } from '../util/errors.js';
import { interruptible } from '../util/interrupt.js';
import { fitted, formatShare, ProgressLine } from '../util/terminal.js';
import { describeReport, describeStart } from './describe.js';
import { type ObserverFlags, openObservers, type RunObserver } from './observers.js';

export interface Watch {
  onStart: (start: TrainStart) => void;
  onEvent: (event: RunEvent) => void;
  onPrepare: (progress: Progress) => void;
  signal: AbortSignal;
}

/** Runs a job, shows it, and prints its report. With `json`, stdout has only the report. */
export async function watchRun(
  json: boolean,
  job: (watch: Watch) => Promise<TrainReport>,
  flags: ObserverFlags = {},
): Promise<TrainReport> {
  const stream = json ? process.stderr : process.stdout;
  const quiet = launchedRank() > 0; // only rank 0 prints
  const say = (line: string) => void (quiet || stream.write(`${fitted(line, stream)}\n`));
  return await interruptible(
    async signal => {
      const observers = await openObservers(flags, say);
      try {
        return await watchJob({ json, say, signal, observers }, job);
      } finally {
        for (const observer of observers) await observer.close(signal);
      }
    },
    () => say('\nfinishing this step, then writing a checkpoint; press Ctrl-C again to stop at once'),
  );
}

interface Watching {
  json: boolean;
  say: (line: string) => void;
  signal: AbortSignal;
  observers: readonly RunObserver[];
}

async function watchJob(
  { json, say, signal, observers }: Watching,
  job: (watch: Watch) => Promise<TrainReport>,
): Promise<TrainReport> {
  const preparing = new ProgressLine();
  let view: ProgressView | undefined;
  try {
    const report = await job({
      onStart: start => {
        preparing.clear();
        say(describeStart(start));
        view = new ProgressView({ epochs: start.config.epochs, totalSteps: start.totalSteps, print: say });
        for (const observer of observers) observer.onStart?.(start);
      },
      onEvent: event => {
        view?.show(event);
        for (const observer of observers) observer.onEvent?.(event);
      },
      onPrepare: ({ stage, share }) =>
        preparing.update(`preparing: ${stage}${share === undefined ? '' : ` ${formatShare(share, 0)}`}`),
      signal,
    });
    if (report.reason === 'interrupted') {
      say(`stopped at step ${report.step}; continue with: npx turbogr resume ${report.run}`);
    }
    if (launchedRank() === 0) {
      process.stdout.write(json ? `${JSON.stringify(report)}\n` : `${fitted(describeReport(report))}\n`);
    }
    return report;
  } catch (error) {
    preparing.clear();
    if (!signal.aborted || view) throw error;
    throw new UserError('stopped', 'stopped before the first step', 'Nothing was left behind; run it again.', {
      cause: error,
    });
  }
}
