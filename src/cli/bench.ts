// `turbogr bench`: measurements, each a table for people and one JSON object for machines.
import { Command } from '@commander-js/extra-typings';
import { benchBalanceCommand } from './bench-balance.js';
import { benchPrepareCommand } from './bench-prepare.js';
import { benchKernelsCommand } from './bench-kernels.js';
import { benchScalingCommand } from './bench-scaling.js';
import { benchStepCommand } from './bench-step.js';

export function benchCommand(): Command {
  return new Command('bench')
    .description('measure kernels, steps, preparation, balance and scaling on this machine')
    .addCommand(benchKernelsCommand())
    .addCommand(benchStepCommand())
    .addCommand(benchPrepareCommand())
    .addCommand(benchBalanceCommand())
    .addCommand(benchScalingCommand());
}
