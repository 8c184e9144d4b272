// `turbogr bench`: measurements, each a table for people and one JSON object for machines.
import { Command } from '@commander-js/extra-typings';
import { benchBalanceCommand } from '../bench/balance.js';
import { benchKernelsCommand } from '../bench/kernels.js';
import { benchLanesCommand } from '../bench/lanes.js';
import { benchNegativesCommand } from '../bench/negatives/negatives.js';
import { benchNetworkCommand } from '../bench/network.js';
import { benchPaperCommand } from '../bench/paper/paper.js';
import { benchPrepareCommand } from '../bench/prepare.js';
import { benchScaleCommand } from '../bench/scale.js';
import { benchScalingCommand } from '../bench/scaling.js';
import { benchStepCommand } from '../bench/step.js';

export function benchCommand(): Command {
  return new Command('bench')
    .description('measure kernels, steps, lanes, negatives, preparation, balance and scaling; the paper beside ours')
    .addCommand(benchKernelsCommand())
    .addCommand(benchStepCommand())
    .addCommand(benchLanesCommand())
    .addCommand(benchNegativesCommand())
    .addCommand(benchPrepareCommand())
    .addCommand(benchBalanceCommand())
    .addCommand(benchScaleCommand())
    .addCommand(benchNetworkCommand())
    .addCommand(benchScalingCommand())
    .addCommand(benchPaperCommand());
}
