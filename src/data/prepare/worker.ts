// The child process of prepare(): builds one store and reports by messages. DuckDB's memory is separate from the caller's.

import { z } from 'zod';
import { UserError } from '../../util/errors.js';
import { buildStore } from './build-store.js';
import { ChoiceError } from './choice-error.js';
import { explainFailure } from './failures.js';
import { PREPARE_OPTIONS } from './options.js';
import type { WorkerMessage } from './prepare.js';

const JOB = z.strictObject({ options: PREPARE_OPTIONS, folder: z.string() });

function send(message: WorkerMessage): void {
  process.send?.(message);
}

async function work(message: unknown): Promise<void> {
  const { options, folder } = JOB.parse(message);
  try {
    const report = await buildStore(options, folder, progress => send({ kind: 'progress', progress }));
    send({ kind: 'done', report });
  } catch (error) {
    if (error instanceof ChoiceError) {
      const { code, message: what, remedy, option, choices } = error;
      send({ kind: 'choice', choice: { code, message: what, remedy, option, choices } });
    } else {
      const userError = error instanceof UserError ? error : explainFailure(error, folder);
      if (userError)
        send({ kind: 'user-error', code: userError.code, message: userError.message, remedy: userError.remedy });
      else send({ kind: 'crash', message: error instanceof Error ? (error.stack ?? error.message) : String(error) });
    }
  }
  process.disconnect();
}

process.once('message', message => void work(message));
// The caller has exited or given up: it, or the next run, removes the folder.
process.once('disconnect', () => process.exit());
// Ctrl-C reaches the whole process group; the caller decides what it means.
process.on('SIGINT', () => {});
