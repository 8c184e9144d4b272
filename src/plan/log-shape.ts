// What the planner needs to know about a log, from its store or from a few numbers.

import type { ResolvedConfig } from '../config/schema.js';
import { windowTokens } from '../data/batch/windows.js';
import type { SequenceSource } from '../data/sequence-source.js';
import { countItems } from '../eval/known-events.js';
import { windowsToTrain } from '../train/plan-steps.js';
import type { LogShape } from './workload.js';

/** Windows that are sampled: enough for their mean length. */
const SAMPLE = 10_000;

export function logShapeOf(source: SequenceSource, config: ResolvedConfig): LogShape {
  const windows = windowsToTrain(source, config);
  const every = Math.max(1, Math.floor(windows.count / SAMPLE));
  const lengths = Array.from({ length: Math.ceil(windows.count / every) }, (_, i) => windowTokens(windows, i * every));
  return { items: source.items, lengths, counts: countItems(source, 'validation'), ticksPerDay: source.ticksPerDay };
}
