// `turbogr ui`: runs in a browser, live.
import { existsSync } from 'node:fs';
import { Command } from '@commander-js/extra-typings';
import { UserError } from '../util/errors.js';
import { interruptible } from '../util/interrupt.js';
import { wholeNumber } from '../util/number-flags.js';

export function uiCommand() {
  return new Command('ui')
    .description('a dashboard of runs, including live ones, in the browser on this machine')
    .argument('[folders...]', 'folders with runs, or runs (default: runs)')
    .option('--port <port>', 'port on 127.0.0.1, 0 for any', wholeNumber, 6007)
    .action(async (given, { port }) => {
      const folders = given.length === 0 ? ['runs'] : given;
      const missing = folders.find(folder => !existsSync(folder));
      if (missing !== undefined) {
        throw new UserError('no-runs', `${missing} does not exist`, 'Give a folder with runs: npx turbogr ui <folder>');
      }
      await interruptible(async signal => {
        const { serveUi } = await import('../ui/serve-ui.js');
        const server = await serveUi({ folders, port });
        process.stdout.write(`${server.url} shows the runs of ${folders.join(', ')}; press Ctrl-C to stop\n`);
        await aborted(signal);
        await server.close();
        process.exitCode = 0; // asked to end, and ended well
      });
    });
}

export async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await new Promise(resolve => signal.addEventListener('abort', resolve, { once: true }));
}
