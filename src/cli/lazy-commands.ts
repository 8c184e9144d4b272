// Commands whose modules are loaded only when they are needed: a training run does not hold the code of the server.
import type { CommandUnknownOpts } from '@commander-js/extra-typings';

/** By name, in the order of the help text. `words` are what follows the name on the command line. */
export type LazyCommands = Readonly<Record<string, (words: readonly string[]) => Promise<CommandUnknownOpts>>>;

/** Adds the command that the command line names; all of them where it names none, so that help lists them. */
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
