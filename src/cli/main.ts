#!/usr/bin/env node
// The command line. Errors that the user can fix are printed with their remedy (as a JSON object on stdout with --json) and
// exit with 2; anything else is a bug and keeps its stack.
import { Command } from '@commander-js/extra-typings';
import { VERSION } from '../native/platform.js';
import { explainSystemError, UserError } from '../util/errors.js';
import { guardOutput } from '../util/interrupt.js';
import { coloured, fitted } from '../util/terminal.js';
import { printableLines } from '../util/text-width.js';
import { COMMANDS } from './commands.js';
import { addCommands } from './lazy-commands.js';
import { tellUsageErrors } from './usage-errors.js';

const program = new Command('turbogr')
  .enablePositionalOptions()
  .description('Training system for generative recommendation: a log file in, a trained model out.')
  .version(VERSION);

guardOutput();
try {
  await addCommands(program, COMMANDS, process.argv.slice(2));
  tellUsageErrors(program);
  await program.parseAsync();
} catch (error) {
  const userError = error instanceof UserError ? error : explainSystemError(error);
  if (!userError) throw error;
  if (process.argv.includes('--json')) {
    const { code, message, remedy } = userError;
    process.stdout.write(`${JSON.stringify({ error: { code, message, remedy } })}\n`);
  } else {
    // Errors may quote text from a log.
    const name = coloured('turbogr:', 'red', process.stderr);
    const text = `${name} ${printableLines(userError.message)}\n${userError.remedy ? `  ${printableLines(userError.remedy)}\n` : ''}`;
    process.stderr.write(fitted(text, process.stderr));
  }
  process.exitCode ??= 2; // an interruption has set its own
}
