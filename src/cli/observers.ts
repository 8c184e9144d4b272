// Observers of a run besides the terminal: opened before it starts, so that their errors are reported early. Servers are loaded
// on demand: their modules take 20 MB that training does not need.
import type { RunEvent } from '../events/event.js';
import type { TrainStart } from '../jobs/train-report.js';
import { launchedRank } from '../dist/launch/join-ranks.js';
import { TensorBoardWriter } from '../view/tensorboard.js';
import { aborted } from './ui.js';

export interface RunObserver {
  onStart?: (start: TrainStart) => void;
  onEvent?: (event: RunEvent) => void;
  /** Called when the run has ended in any way. */
  close: (signal: AbortSignal) => Promise<void>;
}

export interface ObserverFlags {
  ui?: true | number | undefined;
  tensorboard?: true | undefined;
  metrics?: string | undefined;
}

export async function openObservers(flags: ObserverFlags, say: (line: string) => void): Promise<RunObserver[]> {
  if (launchedRank() > 0) return []; // rank 0 has the log
  const { ui, tensorboard, metrics } = flags;
  const observers: RunObserver[] = [];
  if (metrics !== undefined) observers.push(await openMetrics(metrics, say));
  if (tensorboard) observers.push(tensorBoard(say));
  if (ui !== undefined) observers.push(await openDashboard(ui === true ? undefined : ui, say));
  return observers;
}

function tensorBoard(say: (line: string) => void): RunObserver {
  let writer: TensorBoardWriter | undefined;
  return {
    onStart: ({ run }) => {
      writer = new TensorBoardWriter(run);
      say(`TensorBoard: tensorboard --logdir ${run}`);
    },
    onEvent: () => writer?.update(),
    close: async () => writer?.close(),
  };
}

async function openMetrics(address: string, say: (line: string) => void): Promise<RunObserver> {
  const { parseAddress, serveMetrics, TrainingMetrics } = await import('../ui/training-metrics.js');
  const figures = new TrainingMetrics();
  const server = await serveMetrics(figures, parseAddress(address));
  say(`metrics: ${server.url}`);
  return {
    onStart: ({ run, model, totalSteps, fingerprint }) => figures.start({ path: run, model, fingerprint, totalSteps }),
    onEvent: event => figures.see(event),
    close: () => server.close(),
  };
}

async function openDashboard(port: number | undefined, say: (line: string) => void): Promise<RunObserver> {
  const { serveUi } = await import('../ui/serve-ui.js');
  const folders: string[] = [];
  const server = await serveUi({ folders, ...(port !== undefined && { port }) });
  say(`dashboard: ${server.url}`);
  return {
    onStart: ({ run }) => void folders.push(run),
    close: async signal => {
      // A script must terminate; an interactive user wants to see the result.
      if (process.stdout.isTTY && !signal.aborted) {
        say(`the dashboard stays at ${server.url}; press Ctrl-C to stop it`);
        await aborted(signal);
        process.exitCode = 0;
      }
      await server.close();
    },
  };
}
