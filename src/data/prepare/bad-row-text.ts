// Formats a bad row as one line that is safe to print on a terminal.

import { printable } from '../../util/text-width.js';
import type { BadRow } from './options.js';

export function badRowText({ file, line, reason, content }: BadRow): string {
  return printable(`${file}:${line}  ${reason}: ${(content.split('\n')[0] ?? '').slice(0, 80)}`);
}
