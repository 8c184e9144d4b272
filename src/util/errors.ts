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

const AGAIN = 'then give the command again: a run goes on from its last checkpoint, anything else starts anew.';

/** What the system refuses and a person can mend: by the codes of Node, and by the words of libraries that have none. */
const SYSTEM_ERRORS = [
  { code: 'disk-full', sign: /ENOSPC|EDQUOT|No space left on device/, what: 'the disk is full', mend: 'Make room,' },
  {
    code: 'read-only',
    sign: /EROFS|Read-only file system/,
    what: 'the disk is read-only',
    mend: 'Choose another place,',
  },
  {
    code: 'out-of-memory',
    sign: /\[memory\]$|Array buffer allocation failed/,
    what: 'not enough memory',
    mend: 'Choose a smaller model or batch (model.d, batch.tokens), or a machine with more memory,',
  },
  {
    code: 'bad-path',
    sign: /^(ENOENT|ENOTDIR|EISDIR|ELOOP|ENAMETOOLONG|ENXIO|EINVAL): .*'$/,
    what: 'a file is not as it should be',
    mend: 'Look at that path,',
  },
  { code: 'no-permission', sign: /EACCES|EPERM|Permission denied/, what: 'permission denied', mend: 'Give the right,' },
];

/** The error as one that a person can act on, if it is the system's and they can. */
export function explainSystemError(error: unknown): UserError | undefined {
  if (!(error instanceof Error)) return undefined;
  const known = SYSTEM_ERRORS.find(({ sign }) => sign.test(error.message));
  if (!known) return undefined;
  const [reason] = error.message.split('\n');
  return new UserError(known.code, `${known.what} (${reason})`, `${known.mend} ${AGAIN}`, { cause: error });
}
