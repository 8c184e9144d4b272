// The figures of an event, with their names in monitoring tools.

import type { RunEvent } from '../events/event.js';
import { meanShares } from '../train/step-shares.js';

/** Undefined for events that are not points of a curve. */
export function scalarsOf(event: RunEvent): Record<string, number> {
  if (event.kind === 'step') {
    const { loss, lr, tokensPerSecond, mfu, mfuPaper, negatives } = event;
    return {
      'train/loss': loss,
      'train/learning_rate': lr,
      'train/tokens_per_second': tokensPerSecond,
      'train/mfu': mfu,
      ...(mfuPaper !== undefined && { 'train/mfu_paper': mfuPaper }),
      ...(negatives && { 'train/effective_negatives': negatives.effective }),
    };
  }
  if (event.kind === 'epoch') return { 'epoch/loss': event.loss, 'epoch/mfu': event.mfu };
  if (event.kind === 'validation') return { [`validation/${event.metric}`]: event.value };
  if (event.kind === 'baselines') {
    return Object.fromEntries(
      Object.entries(event.values).map(([name, value]) => [`baseline/${name.replaceAll(' ', '_')}`, value]),
    );
  }
  if (event.kind === 'sample') {
    const bytes = Object.values(event.memory).reduce((sum, size) => sum + size, 0);
    return { 'step/milliseconds': event.milliseconds, 'step/memory_bytes': bytes };
  }
  if (event.kind === 'ranks') {
    const shares = meanShares(
      event.ranks,
      event.ranks.map(() => 1),
    );
    return Object.fromEntries(Object.entries(shares ?? {}).map(([name, share]) => [`step/${name}`, share]));
  }
  return {};
}
