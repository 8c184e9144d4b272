// A bad row on one line that a terminal can show, whatever the row holds.

import { printable } from '../../util/text-width.js';
import type { BadRow } from './options.js';

export function badRowText({ file, line, reason, content }: BadRow): string {
  return printable(`${file}:${line}  ${reason}: ${(content.split('\n')[0] ?? '').slice(0, 80)}`);
}
