// Usage errors are reported like any other: with a remedy, as JSON if requested, status 2.
import type { CommandUnknownOpts } from '@commander-js/extra-typings';
import { UserError } from '../util/errors.js';

/** The command as typed. */
function typed(command: CommandUnknownOpts): string {
  return command.parent ? `${typed(command.parent)} ${command.name()}` : `npx ${command.name()}`;
}

export function tellUsageErrors(command: CommandUnknownOpts): void {
  command.configureOutput({ outputError: () => undefined }); // printed where the thrown error is caught
  command.exitOverride(({ code, exitCode, message }) => {
    if (exitCode === 0 || code === 'commander.help') return; // help or version was printed
    const text = message.replace(/^error: /, '').replaceAll('\n', ' ');
    throw new UserError('bad-usage', text, `${typed(command)} --help lists the options.`);
  });
  for (const inner of command.commands) tellUsageErrors(inner);
}
