// How commands are interrupted. Ctrl-C, SIGTERM, a closed terminal (SIGHUP) and a closed output pipe (`| head`) all abort one
// AbortSignal; the work completes what it must (a checkpoint, clean-up) and the process ends with the status that shells
// expect. A second signal ends it at once.

export type Cause = 'SIGINT' | 'SIGTERM' | 'SIGHUP' | 'SIGPIPE';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** 128 + the number of the signal. */
const STATUS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129, SIGPIPE: 141 };

/** Listeners for when standard output or standard error can no longer be written. */
const onBrokenOutput = new Set<() => void>();
let guarded = false;

/** From here on a broken output is not an error: writes are dropped, and running work is interrupted. */
export function guardOutput(): void {
  if (guarded) return;
  guarded = true;
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', () => {
      process.exitCode ??= STATUS.SIGPIPE;
      for (const tell of onBrokenOutput) tell();
    });
  }
}

/**
 * Runs interruptible work, and sets the exit status if it was interrupted. `onInterrupt` is called once with the cause, to
 * say what happens next.
 */
export async function interruptible<T>(
  work: (signal: AbortSignal) => Promise<T>,
  onInterrupt?: (cause: Cause) => void,
): Promise<T> {
  guardOutput();
  const controller = new AbortController();
  const stop = (cause: Cause): void => {
    if (controller.signal.aborted) {
      // A broken output is reported again with every line; only a signal counts as a second request.
      if (cause !== 'SIGPIPE') process.exit(STATUS[cause]);
      return;
    }
    process.exitCode = STATUS[cause];
    controller.abort(cause);
    onInterrupt?.(cause);
  };
  const broken = () => stop('SIGPIPE');
  onBrokenOutput.add(broken);
  for (const name of SIGNALS) process.on(name, stop);
  try {
    return await work(controller.signal);
  } finally {
    onBrokenOutput.delete(broken);
    for (const name of SIGNALS) process.off(name, stop);
  }
}
