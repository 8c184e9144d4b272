// `turbogr serve`: a trained run over HTTP.
import { Command } from '@commander-js/extra-typings';
import { interruptible } from '../util/interrupt.js';
import { countNumber, positiveNumber, wholeNumber } from '../util/number-flags.js';

export function serveCommand() {
  return new Command('serve')
    .description('answer over HTTP: recommend, rank, similar, embed, events; the OpenAPI document is at /openapi.json')
    .argument('<run>', 'folder of the run, or a bundle')
    .option('--host <address>', 'address to bind', '127.0.0.1')
    .option('--port <port>', 'port to bind, 0 for any', wholeNumber, 8080)
    .option('--threads <count>', 'worker threads; does not affect results', countNumber)
    .option('--items <file>', 'titles and other columns of items: CSV, Parquet or JSON lines')
    .option('--items-key <column>', 'column of the item ids in that file (default: guessed)')
    .option('--no-verify', "do not verify the store's checksums")
    .option('--events <folder>', 'accept events and store them in this folder (default: refuse them)')
    .option('--anonymous', 'serve other machines without a token (a token is read from TURBOGR_TOKEN)')
    .option('--queue <requests>', 'maximum waiting requests; more get a 429', countNumber, 256)
    .option('--batch <requests>', 'maximum requests per batch', countNumber, 64)
    .option('--timeout <ms>', 'maximum waiting time of a request', positiveNumber, 2_000)
    .option('--body-limit <bytes>', 'maximum size of a request', countNumber, 1 << 20)
    .option('--reload <seconds>', 'interval of checking for a newer checkpoint; 0 for never', wholeNumber, 5)
    .action(async (run, { items, itemsKey, events, ...options }) => {
      const say = (text: string): boolean => process.stderr.write(`turbogr: ${text}\n`);
      await interruptible(
        async signal => {
          const token = process.env['TURBOGR_TOKEN'];
          const { serve } = await import('../server/serve.js'); // loaded lazily: 20 MB of modules
          const server = await serve({
            ...options,
            run,
            events,
            ...(token && { token }),
            ...(items !== undefined && { items: { file: items, ...(itemsKey !== undefined && { key: itemsKey }) } }),
            onReload: ({ name, version }) => say(`now serving ${name}@${version}`),
            onError: error => say(error.stack ?? error.message),
          });
          process.stdout.write(`${server.url} serves ${server.model.name}@${server.model.version}\n`);
          if (!signal.aborted) await new Promise(resolve => signal.addEventListener('abort', resolve, { once: true }));
          await server.close();
          process.exitCode = 0; // asked to end, and ended well
        },
        () => say('finishing pending requests; press again to stop at once'),
      );
    });
}
