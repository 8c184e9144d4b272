// Held-out loss as a function of model and data size: two power laws, the larger of which dominates. The form of Kaplan et
// al. (2020), with the sharpness s of the transition as a separate parameter:
//
//   L(N, D) = ((A / N^a)^s + (B / D^b)^s)^(1/s)
//
// N parameters, D training events. The first term dominates with enough data, the second with a large enough model. For
// given a, b and s the law is linear in A^s and B^s after raising both sides to the power s, so these come from least
// squares on relative errors; a, b and s from a grid search that narrows around its best point.

export interface ScalingPoint {
  /** N. */
  parameters: number;
  /** D. */
  events: number;
  loss: number;
}

export interface ScalingLaw {
  A: number;
  B: number;
  a: number;
  b: number;
  s: number;
  /** Root mean square residual. */
  error: number;
}

const STEPS = 8;
const NARROWINGS = 16;
const EXPONENTS: SearchRange = { from: 0.005, to: 2 };
const SHARPNESS: SearchRange = { from: 0.5, to: 100 };

interface SearchRange {
  from: number;
  to: number;
}

export function lawAt({ A, B, a, b, s }: ScalingLaw, parameters: number, events: number): number {
  return ((A / parameters ** a) ** s + (B / events ** b) ** s) ** (1 / s);
}

export function fitScalingLaw(points: readonly ScalingPoint[]): ScalingLaw {
  let [as, bs, sharp] = [EXPONENTS, EXPONENTS, SHARPNESS];
  let best = lawWith(points, { a: 0.1, b: 0.1, s: 1 });
  for (let round = 0; round < NARROWINGS; round++) {
    for (const s of grid(sharp)) {
      for (const a of grid(as)) {
        for (const b of grid(bs)) {
          const law = lawWith(points, { a, b, s });
          if (law.error < best.error) best = law;
        }
      }
    }
    as = around(best.a, as, EXPONENTS);
    bs = around(best.b, bs, EXPONENTS);
    sharp = around(best.s, sharp, SHARPNESS);
  }
  return best;
}

function grid({ from, to }: SearchRange): number[] {
  return Array.from({ length: STEPS + 1 }, (_, i) => from * (to / from) ** (i / STEPS));
}

/** Two thirds as wide (logarithmically), within sensible bounds. */
function around(best: number, { from, to }: SearchRange, sense: SearchRange): SearchRange {
  const reach = (to / from) ** (1 / 3);
  return { from: Math.max(sense.from, best / reach), to: Math.min(sense.to, best * reach) };
}

/** The law for given exponents: x A^s + y B^s = 1, where x and y are the two terms relative to the measured loss. */
function lawWith(points: readonly ScalingPoint[], shape: Pick<ScalingLaw, 'a' | 'b' | 's'>): ScalingLaw {
  const { a, b, s } = shape;
  let [xx, xy, yy, x1, y1] = [0, 0, 0, 0, 0];
  for (const { parameters, events, loss } of points) {
    const x = (parameters ** a * loss) ** -s;
    const y = (events ** b * loss) ** -s;
    xx += x * x;
    xy += x * y;
    yy += y * y;
    x1 += x;
    y1 += y;
  }
  const det = xx * yy - xy * xy;
  // A term that would have to be negative is left out.
  const [forA, forB] = [(x1 * yy - y1 * xy) / det, (y1 * xx - x1 * xy) / det];
  const [left, right] = forA < 0 ? [0, y1 / yy] : forB < 0 ? [x1 / xx, 0] : [forA, forB];
  const law = { ...shape, A: left ** (1 / s), B: right ** (1 / s), error: 0 };
  const squares = points.reduce((sum, p) => sum + (lawAt(law, p.parameters, p.events) - p.loss) ** 2, 0);
  const error = Math.sqrt(squares / points.length);
  return { ...law, error: Number.isNaN(error) ? Number.POSITIVE_INFINITY : error };
}
