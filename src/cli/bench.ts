// `turbogr bench`: measurements, each as a table or as one JSON object.
import { Command } from '@commander-js/extra-typings';
import { addCommands, type LazyCommands } from './lazy-commands.js';

export const BENCHES: LazyCommands = {
  kernels: async () => (await import('../bench/kernels.js')).benchKernelsCommand(),
  step: async () => (await import('../bench/step.js')).benchStepCommand(),
  lanes: async () => (await import('../bench/lanes.js')).benchLanesCommand(),
  negatives: async () => (await import('../bench/negatives/negatives.js')).benchNegativesCommand(),
  prepare: async () => (await import('../bench/prepare.js')).benchPrepareCommand(),
  balance: async () => (await import('../bench/balance.js')).benchBalanceCommand(),
  scale: async () => (await import('../bench/scale.js')).benchScaleCommand(),
  network: async () => (await import('../bench/network.js')).benchNetworkCommand(),
  scaling: async () => (await import('../bench/scaling.js')).benchScalingCommand(),
  paper: async () => (await import('../bench/paper/paper.js')).benchPaperCommand(),
};

export async function benchCommand(words: readonly string[]): Promise<Command> {
  const command = new Command('bench').description(
    "measure kernels, steps, lanes, negatives, preparation, balance and scaling; compare with the paper's tables",
  );
  await addCommands(command, BENCHES, words);
  return command;
}
