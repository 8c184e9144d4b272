// All sections in the order of the paper, then those without a counterpart in it.

import { attention } from './attention.js';
import { balance } from './balance.js';
import { ladder } from './ladder.js';
import { linearity } from './linearity.js';
import { lookup } from './lookup.js';
import { mfu } from './mfu.js';
import { negatives } from './negatives.js';
import { network } from './network.js';
import { peers } from './peers.js';
import type { Section } from './row.js';
import { sharing } from './sharing.js';
import { staleness } from './staleness.js';
import { timeChannel } from './time-channel.js';
import { waiting } from './waiting.js';

export const SECTIONS: readonly Section[] = [
  mfu,
  attention,
  timeChannel,
  lookup,
  balance,
  waiting,
  linearity,
  network,
  staleness,
  negatives,
  sharing,
  ladder,
  peers,
];
