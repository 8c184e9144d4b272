import { expect, test } from 'vitest';
import { explainSystemError } from '../../src/util/errors.js';

test.each([
  ['ENOSPC: no space left on device, write', 'disk-full'],
  ['preparing failed: IO Error: Could not write file "x": No space left on device\n  at somewhere', 'disk-full'],
  ["EACCES: permission denied, mkdir '/root/x'", 'no-permission'],
  ["ENOENT: no such file or directory, open '/proc/.x.1.tmp'", 'bad-path'],
  ["EISDIR: illegal operation on a directory, rename 'a' -> 'b'", 'bad-path'],
  ["EROFS: read-only file system, open '/x'", 'read-only'],
])('what a person can mend is said with a remedy: %s', (message, code) => {
  const told = explainSystemError(new Error(message));
  expect(told).toMatchObject({ code });
  expect(told!.message).toContain(message.split('\n')[0]);
  expect(told!.message).not.toContain('\n');
});

test('any other error is a bug of ours', () => {
  expect(explainSystemError(new TypeError('x is not a function'))).toBeUndefined();
  expect(explainSystemError('ENOSPC')).toBeUndefined();
});
