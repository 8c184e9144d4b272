// All sections in the order of the paper; what is ours alone stands at the end.

import { attention } from './attention.js';
import { balance } from './balance.js';
import { communication } from './communication.js';
import { ladder } from './ladder.js';
import { lookup } from './lookup.js';
import { mfu } from './mfu.js';
import { negatives } from './negatives.js';
import { peers } from './peers.js';
import type { Section } from './row.js';
import { sharing } from './sharing.js';
import { waiting } from './waiting.js';

export const SECTIONS: readonly Section[] = [
  mfu,
  attention,
  lookup,
  balance,
  waiting,
  communication,
  negatives,
  sharing,
  ladder,
  peers,
];
