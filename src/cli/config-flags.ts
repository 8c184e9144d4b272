// Config flags, shared by all commands that take a config. Precedence, lowest first: recipe, file, --set, short flags.

import type { Command } from '@commander-js/extra-typings';
import { parseAssignments, readConfigFile, type UncheckedConfig } from '../config/resolve.js';
import { countNumber, positiveNumber, wholeNumber } from '../util/number-flags.js';

function collect(value: string, earlier: string[]): string[] {
  return [...earlier, value];
}

export function withConfigFlags<A extends unknown[]>(command: Command<A>) {
  return command
    .option('--recipe <name>', 'named config to start from, such as ml-1m-hstu')
    .option('--config <file>', 'YAML or JSON file with the config, or a .js or .ts module, whose code is run')
    .option('--set <key=value>', 'any key of the config, such as model.d=64; may be repeated', collect, [])
    .option('--model <kind>', 'hstu, fuxi or sasrec')
    .option('--size <name>', 'nano, micro, mini; the paper: tiny, small, medium, large, long')
    .option('--epochs <count>', 'epochs to train', wholeNumber)
    .option('--lr <rate>', 'peak learning rate', positiveNumber)
    .option('--seed <number>', 'same seed, same weights', wholeNumber)
    .option('--threads <count>', 'worker threads; does not affect results', wholeNumber)
    .option('--group-size <count>', 'ranks that a large table is sharded over; does not affect results', countNumber);
}

export interface ConfigFlags {
  recipe?: string | undefined;
  config?: string | undefined;
  set: string[];
  model?: string | undefined;
  size?: string | undefined;
  epochs?: number | undefined;
  lr?: number | undefined;
  seed?: number | undefined;
  threads?: number | undefined;
  groupSize?: number | undefined;
}

/** The config given by the flags, to be validated by `resolveConfig`. */
export async function readConfigFlags(flags: ConfigFlags): Promise<UncheckedConfig[]> {
  const file = flags.config === undefined ? {} : await readConfigFile(flags.config);
  const { recipe, model, size, epochs, lr, seed, threads, groupSize } = flags;
  const short = {
    recipe,
    model: defined({ kind: model, size }),
    optimizer: defined({ lr }),
    epochs,
    seed,
    threads,
    groupSize,
  };
  return [file, parseAssignments(flags.set), defined(short)];
}

function defined(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
