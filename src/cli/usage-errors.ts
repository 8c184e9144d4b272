// A command line that cannot be read is an error like any other: told with its remedy, as JSON when that is asked for, status 2.
import type { CommandUnknownOpts } from '@commander-js/extra-typings';
import { UserError } from '../util/errors.js';

/** The command's path, as it is typed. */
function typed(command: CommandUnknownOpts): string {
  return command.parent ? `${typed(command.parent)} ${command.name()}` : `npx ${command.name()}`;
}

export function tellUsageErrors(command: CommandUnknownOpts): void {
  command.configureOutput({ outputError: () => undefined }); // told by whoever catches what is thrown here
  command.exitOverride(({ code, exitCode, message }) => {
    if (exitCode === 0 || code === 'commander.help') return; // what was asked for has been shown
    const told = message.replace(/^error: /, '').replaceAll('\n', ' ');
    throw new UserError('bad-usage', told, `${typed(command)} --help shows what there is.`);
  });
  for (const inner of command.commands) tellUsageErrors(inner);
}
