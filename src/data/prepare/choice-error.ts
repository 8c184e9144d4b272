// What neither an option nor the log settles. A command on a terminal may ask; elsewhere it is an error with its remedy.

import { UserError } from '../../util/errors.js';

export type ChoiceOption = 'user' | 'item' | 'time' | 'timeFormat';

export class ChoiceError extends UserError {
  /** The option of `prepare` that settles it. */
  readonly option: ChoiceOption;
  readonly choices: readonly string[];

  constructor(what: {
    code: string;
    message: string;
    remedy: string;
    option: ChoiceOption;
    choices: readonly string[];
  }) {
    super(what.code, what.message, what.remedy);
    this.option = what.option;
    this.choices = what.choices;
  }
}
