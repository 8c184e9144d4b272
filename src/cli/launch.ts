// `turbogr launch`: starts a command on several ranks with the MPI of this machine.
import { fileURLToPath } from 'node:url';
import { Command, Option } from '@commander-js/extra-typings';
import { buildShim } from '../dist/launch/build-shim.js';
import { findLauncher } from '../dist/launch/find-mpi.js';
import { Lifelines } from '../dist/launch/lifelines.js';
import { MPI_KINDS, MPI_NAMES } from '../dist/launch/mpi-kind.js';
import { mpirunArguments } from '../dist/launch/mpirun-line.js';
import { runJob } from '../dist/launch/run-job.js';
import { UserError } from '../util/errors.js';
import { countNumber, positiveNumber, wholeNumber } from '../util/number-flags.js';

const MAIN = fileURLToPath(new URL('./main.js', import.meta.url));

export function launchCommand() {
  return new Command('launch')
    .description('start a command on several ranks: turbogr launch -n 4 train <data> ...')
    .argument('[command...]', 'train, resume or ranks with its flags, or a script that calls the library')
    .option('-n, --ranks <count>', 'number of ranks', countNumber)
    .option('--hosts <list>', 'where: host:slots,host:slots (default: this machine)')
    .addOption(new Option('--mpi <kind>', 'which MPI (default: the first one found)').choices(MPI_KINDS))
    .option('--mpi-flag <flag>', 'an additional flag for mpirun; may be repeated', collect, [])
    .option('--restarts <count>', 'how often to restart from the newest checkpoint after a fault', wholeNumber, 0)
    .option(
      '--patience <seconds>',
      'end the job if the JavaScript thread of a rank is blocked for this long',
      positiveNumber,
      120,
    )
    .option('--build', 'only build the shim for the MPI of this machine')
    .passThroughOptions()
    .action(async (command, { ranks, hosts, mpi, mpiFlag, restarts, patience, build }) => {
      const shim = buildShim(mpi ?? findLauncher().kind);
      if (build) {
        process.stdout.write(`${MPI_NAMES[shim.kind]}: ${shim.path}${shim.built ? '' : ' (already built)'}\n`);
        return;
      }
      if (ranks === undefined || command.length === 0) {
        const remedy = 'For example: npx turbogr launch -n 2 train <data>';
        throw new UserError('nothing-to-launch', 'launch needs a number of ranks and a command', remedy);
      }
      const launcher = findLauncher(shim.kind);
      const remote = hosts !== undefined || mpiFlag.length > 0; // such as a file of hosts
      const lifelines = await Lifelines.open(remote);
      const environment = {
        ...lifelines.environment,
        TURBOGR_LAUNCHED: '1',
        TURBOGR_WORLD: String(ranks),
        TURBOGR_PATIENCE: String(patience),
      };
      const start = { count: ranks, hosts, extra: mpiFlag, environment };
      process.exitCode = await runJob({
        command: launcher.command,
        arguments: [...mpirunArguments(shim.kind, start), process.execPath, ...program(command)],
        environment,
        lifelines,
        restarts,
      });
    });
}

/** A user's script, or one of our commands. */
function program(command: readonly string[]): string[] {
  return /\.(m?js|m?ts)$/.test(command[0]!) ? [...command] : [MAIN, ...command];
}

function collect(value: string, earlier: string[]): string[] {
  return [...earlier, value];
}
