// Learning rate schedule: linear warm-up to the peak, then constant, or linear or cosine decay to `floor` times the peak.

export interface Schedule {
  kind: 'constant' | 'linear' | 'cosine';
  /** Warm-up steps. */
  warmup: number;
  /** Final rate as a share of the peak. */
  floor: number;
}

/** Factor on the peak rate at `step`, counted from 1 to `total`. */
export function scheduleFactor({ kind, warmup, floor }: Schedule, step: number, total: number): number {
  if (step <= warmup) return step / warmup;
  if (kind === 'constant') return 1;
  const progress = Math.min(1, (step - warmup) / Math.max(1, total - warmup));
  const fall = kind === 'linear' ? progress : (1 - Math.cos(Math.PI * progress)) / 2;
  return 1 - (1 - floor) * fall;
}
