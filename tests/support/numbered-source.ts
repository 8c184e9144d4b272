// Logs in which an event's number says everything about it, and random lengths for their users.
import * as fc from 'fast-check';
import { MemorySource } from '../../src/data/memory-source.js';

/** Users with the given numbers of events; event e of the whole log has item e, time 10 e, action -e. */
export function numberedSource(lengths: number[]): MemorySource {
  const offsets = Int32Array.from([0, ...lengths]);
  for (let u = 0; u < lengths.length; u++) offsets[u + 1]! += offsets[u]!;
  const events = offsets[lengths.length]!;
  const item = Int32Array.from({ length: events }, (_, e) => e);
  return new MemorySource({
    items: events,
    offsets,
    item,
    time: BigInt64Array.from(item, e => 10n * BigInt(e)),
    action: item.map(e => -e),
  });
}

export const ragged = fc.array(fc.nat({ max: 40 }), { maxLength: 30 });
