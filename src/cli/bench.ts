// `turbogr bench`: measurements, each a table for people and one JSON object for machines.
import { Command } from '@commander-js/extra-typings';
import { benchBalanceCommand } from './bench-balance.js';

export function benchCommand(): Command {
  return new Command('bench')
    .description('measure kernels, steps, balance and preparation on this machine')
    .addCommand(benchBalanceCommand());
}
