// A command's module is loaded when the command is named, and under the name that the command has.
import { Command } from '@commander-js/extra-typings';
import { expect, test } from 'vitest';
import { BENCHES } from '../../src/cli/bench.js';
import { COMMANDS } from '../../src/cli/commands.js';
import { addCommands, type LazyCommands } from '../../src/cli/lazy-commands.js';

async function loaded(words: string[]): Promise<string[]> {
  const seen: string[] = [];
  const command = (name: string): LazyCommands => ({
    [name]: async rest => {
      seen.push([name, ...rest].join(' '));
      return new Command(name);
    },
  });
  await addCommands(new Command('program'), { ...command('train'), ...command('bench') }, words);
  return seen;
}

test('only the named command is loaded; all of them where none is named', async () => {
  expect(await loaded(['bench', 'step', '--d', '8'])).toEqual(['bench step --d 8']);
  expect(await loaded(['--version'])).toEqual([]);
  for (const words of [[], ['--help'], ['-h'], ['help', 'bench'], ['trian'], ['constructor']]) {
    expect(await loaded(words)).toEqual(['train', 'bench']);
  }
});

test.each([
  ['commands', COMMANDS],
  ['benchmarks', BENCHES],
])('%s have the names under which they are listed, and a description', async (_, commands) => {
  for (const [name, load] of Object.entries(commands)) {
    const command = await load(['--version']);
    expect(command.name()).toBe(name);
    expect(command.description()).not.toBe('');
  }
});
