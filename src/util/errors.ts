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

/** Exit status of a command that ended in a UserError. */
export const USER_ERROR_STATUS = 2;

/** The error as a person reads it: no stack for a UserError, the stack for anything else. */
export function describeError(error: unknown): string {
  if (error instanceof UserError) return `error: ${error.message}\n  ${error.remedy} [${error.code}]`;
  if (error instanceof Error) return error.stack ?? error.message;
  return String(error);
}
