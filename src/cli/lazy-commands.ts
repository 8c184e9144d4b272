// Lazily loaded commands: a training run does not load the code of the server.
import type { CommandUnknownOpts } from '@commander-js/extra-typings';

/** By name, in the order of the help text. `words`: the command line after the name. */
export type LazyCommands = Readonly<Record<string, (words: readonly string[]) => Promise<CommandUnknownOpts>>>;

/** Adds the command that the command line names; without one, all of them, for the help text. */
export async function addCommands(
  to: CommandUnknownOpts,
  commands: LazyCommands,
  words: readonly string[],
): Promise<void> {
  const [name = '', ...rest] = words;
  const named = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (named) to.addCommand(await named(rest));
  else if (!isOtherOption(name)) for (const load of Object.values(commands)) to.addCommand(await load([]));
}

/** An option of the parent itself, such as --version. */
function isOtherOption(word: string): boolean {
  return word.startsWith('-') && word !== '--help' && word !== '-h';
}
