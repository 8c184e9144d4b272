// A choice that neither options nor the log determine. On a terminal the command may ask; otherwise it is an error.

import { UserError } from '../../util/errors.js';

export type ChoiceOption = 'user' | 'item' | 'time' | 'timeFormat';

export class ChoiceError extends UserError {
  /** The option of `prepare` that determines it. */
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
