// Errors that the user can act on: what was wrong, and what to do next. Anything else that is thrown is a bug and keeps its
// stack.

export class UserError extends Error {
  override readonly name = 'UserError';
  /** Short kebab-case error code, stable for scripts. */
  readonly code: string;
  /** The next step for the user. */
  readonly remedy: string;

  constructor(code: string, message: string, remedy: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.remedy = remedy;
  }
}

const AGAIN = 'then run the command again: a run resumes from its last checkpoint, anything else starts over.';

/** System errors that the user can fix, recognised by Node's codes and by the messages of libraries. */
const SYSTEM_ERRORS = [
  {
    code: 'disk-full',
    sign: /ENOSPC|EDQUOT|No space left on device/,
    what: 'the disk is full',
    fix: 'Free some space,',
  },
  {
    code: 'read-only',
    sign: /EROFS|Read-only file system/,
    what: 'the disk is read-only',
    fix: 'Choose another path,',
  },
  {
    code: 'out-of-memory',
    sign: /\[memory\]$|Array buffer allocation failed/,
    what: 'not enough memory',
    fix: 'Choose a smaller model or batch (model.d, batch.tokens), or a machine with more memory,',
  },
  {
    code: 'bad-path',
    sign: /^(ENOENT|ENOTDIR|EISDIR|ELOOP|ENAMETOOLONG|ENXIO|EINVAL): .*'$/,
    what: 'a path is not the expected kind of file',
    fix: 'Check that path,',
  },
  {
    code: 'no-permission',
    sign: /EACCES|EPERM|Permission denied/,
    what: 'permission denied',
    fix: 'Grant the permission,',
  },
];

/** Converts a system error that the user can fix into a UserError. */
export function explainSystemError(error: unknown): UserError | undefined {
  if (!(error instanceof Error)) return undefined;
  const known = SYSTEM_ERRORS.find(({ sign }) => sign.test(error.message));
  if (!known) return undefined;
  const [reason] = error.message.split('\n');
  return new UserError(known.code, `${known.what} (${reason})`, `${known.fix} ${AGAIN}`, { cause: error });
}
