#!/usr/bin/env node
// The command line: one file per command, listed here in the order in which a person meets them. Errors a person can
// mend are printed with their remedy (as a JSON object on stdout with --json) and exit with 2; anything else is our bug and
// keeps its stack.
import { Command } from '@commander-js/extra-typings';
import { VERSION } from '../native/platform.js';
import { explainSystemError, UserError } from '../util/errors.js';
import { guardOutput } from '../util/interrupt.js';
import { coloured, fitted } from '../util/terminal.js';
import { printableLines } from '../util/text-width.js';
import { benchCommand } from './bench.js';
import { compareCommand } from './compare.js';
import { configCommand } from './config.js';
import { demoCommand } from './demo.js';
import { doctorCommand } from './doctor.js';
import { embedCommand } from './embed.js';
import { evaluateCommand } from './evaluate.js';
import { exportCommand } from './export.js';
import { launchCommand } from './launch.js';
import { planCommand } from './plan.js';
import { prepareCommand } from './prepare.js';
import { ranksCommand } from './ranks.js';
import { recommendCommand } from './recommend.js';
import { resumeCommand } from './resume.js';
import { serveCommand } from './serve.js';
import { similarCommand } from './similar.js';
import { synthCommand } from './synth.js';
import { trainCommand } from './train.js';
import { tuneCommand } from './tune.js';
import { uiCommand } from './ui.js';
import { updateCommand } from './update.js';
import { tellUsageErrors } from './usage-errors.js';

const program = new Command('turbogr')
  .enablePositionalOptions()
  .description('Training system for generative recommendation: a log file in, a trained model out.')
  .version(VERSION)
  .addCommand(demoCommand())
  .addCommand(synthCommand())
  .addCommand(prepareCommand())
  .addCommand(trainCommand())
  .addCommand(resumeCommand())
  .addCommand(updateCommand())
  .addCommand(tuneCommand())
  .addCommand(launchCommand())
  .addCommand(ranksCommand())
  .addCommand(planCommand())
  .addCommand(evaluateCommand())
  .addCommand(compareCommand())
  .addCommand(uiCommand())
  .addCommand(recommendCommand())
  .addCommand(similarCommand())
  .addCommand(embedCommand())
  .addCommand(serveCommand())
  .addCommand(exportCommand())
  .addCommand(configCommand())
  .addCommand(benchCommand())
  .addCommand(doctorCommand());

tellUsageErrors(program);
guardOutput();
try {
  await program.parseAsync();
} catch (error) {
  const told = error instanceof UserError ? error : explainSystemError(error);
  if (!told) throw error;
  if (process.argv.includes('--json')) {
    const { code, message, remedy } = told;
    process.stdout.write(`${JSON.stringify({ error: { code, message, remedy } })}\n`);
  } else {
    // What an error quotes may come from a log.
    const name = coloured('turbogr:', 'red', process.stderr);
    const text = `${name} ${printableLines(told.message)}\n${told.remedy ? `  ${printableLines(told.remedy)}\n` : ''}`;
    process.stderr.write(fitted(text, process.stderr));
  }
  process.exitCode ??= 2; // an interruption has set its own
}
