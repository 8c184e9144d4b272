#!/usr/bin/env node
// The command line: one file a command, listed here in the order in which a person meets them. Errors a person can
// mend are printed with their remedy and exit with 2; anything else is our bug and keeps its stack.
import { Command } from '@commander-js/extra-typings';
import { systemRefusal, UserError } from '../util/errors.js';
import { benchCommand } from './bench.js';
import { configCommand } from './config.js';
import { demoCommand } from './demo.js';
import { evaluateCommand } from './evaluate.js';
import { exportCommand } from './export.js';
import { prepareCommand } from './prepare.js';
import { recommendCommand } from './recommend.js';
import { resumeCommand } from './resume.js';
import { synthCommand } from './synth.js';
import { trainCommand } from './train.js';

const program = new Command('turbogr')
  .description('Training system for generative recommendation: a log file in, a trained model out.')
  .version('0.1.0')
  .showHelpAfterError('(turbogr --help lists the commands)')
  .addCommand(demoCommand())
  .addCommand(synthCommand())
  .addCommand(prepareCommand())
  .addCommand(trainCommand())
  .addCommand(resumeCommand())
  .addCommand(evaluateCommand())
  .addCommand(recommendCommand())
  .addCommand(exportCommand())
  .addCommand(configCommand())
  .addCommand(benchCommand());

try {
  await program.parseAsync();
} catch (error) {
  const told = error instanceof UserError ? error : systemRefusal(error);
  if (!told) throw error;
  process.stderr.write(`turbogr: ${told.message}\n${told.remedy ? `  ${told.remedy}\n` : ''}`);
  process.exitCode ??= 2;
}
