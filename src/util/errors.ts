// Errors that a person can act on: what was wrong, and what to do next.
// Anything else that is thrown is a bug of ours and keeps its stack.

export class UserError extends Error {
  override readonly name = 'UserError';
  /** Short kebab-case name of the kind of error, stable for scripts. */
  readonly code: string;
  /** The next step for the person who reads the message. */
  readonly remedy: string;

  constructor(code: string, message: string, remedy: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.remedy = remedy;
  }
}
