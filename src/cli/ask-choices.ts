// Ambiguities of a log (which column is the user; whether the day or the month comes first) are resolved by a question on a
// terminal, and the work is restarted with the answer. Elsewhere they are errors with a remedy.

import { createInterface } from 'node:readline/promises';
import { ChoiceError, type ChoiceOption } from '../data/prepare/choice-error.js';
import { printable } from '../util/text-width.js';

export type ChoiceAnswers = Partial<Record<ChoiceOption, string>>;

const QUESTIONS: Record<ChoiceOption, string> = {
  user: 'Which column is the user?',
  item: 'Which column is the item?',
  time: "Which column is the time? 'none' if the rows are in order.",
  timeFormat: 'What is the format of the dates?',
};

/** `work` must leave nothing behind when it fails. */
export async function askChoices<T>(
  work: (answers: ChoiceAnswers) => Promise<T>,
  { signal, answers = {} }: { signal: AbortSignal; answers?: ChoiceAnswers },
): Promise<T> {
  try {
    return await work(answers);
  } catch (error) {
    if (!(error instanceof ChoiceError) || !process.stdin.isTTY || !process.stderr.isTTY) throw error;
    const { option, choices } = error;
    const listed = choices.map((choice, i) => `  ${i + 1}  ${printable(choice)}`).join('\n');
    const question = `${printable(error.message)}\n${QUESTIONS[option]}\n${listed}\n> `;
    const terminal = createInterface({ input: process.stdin, output: process.stderr });
    const answer = await terminal.question(question, { signal }).finally(() => terminal.close());
    const chosen = choices[Number(answer) - 1] ?? answer.trim();
    return await askChoices(work, { signal, answers: { ...answers, [option]: chosen } });
  }
}
