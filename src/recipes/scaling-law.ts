// How held-out loss falls with the size of model and data, as Hoffmann et al. (2022) fit it:
//
//   L(N, D) = E + A / N^a + B / D^b
//
// N parameters, D training events, E the loss that no size removes. For given exponents the law is linear in E, A and B,
// so these come from least squares, and the exponents from a search over a grid that narrows around its best.

export interface ScalingPoint {
  /** N. */
  parameters: number;
  /** D. */
  events: number;
  loss: number;
}

export interface ScalingLaw {
  E: number;
  A: number;
  B: number;
  a: number;
  b: number;
  /** Root mean square of the losses' distances from the law. */
  error: number;
}

const STEPS = 24;
const NARROWINGS = 12;
const EXPONENTS = { from: 0.02, to: 2 };

export function lawAt({ E, A, B, a, b }: ScalingLaw, parameters: number, events: number): number {
  return E + A / parameters ** a + B / events ** b;
}

export function fitScalingLaw(points: readonly ScalingPoint[]): ScalingLaw {
  let [as, bs] = [EXPONENTS, EXPONENTS];
  let best = lawWith(points, 1, 1);
  for (let round = 0; round < NARROWINGS; round++) {
    for (const a of grid(as)) {
      for (const b of grid(bs)) {
        const law = lawWith(points, a, b);
        if (law.error < best.error) best = law;
      }
    }
    as = around(best.a, as);
    bs = around(best.b, bs);
  }
  return best;
}

interface Range {
  from: number;
  to: number;
}

function grid({ from, to }: Range): number[] {
  return Array.from({ length: STEPS + 1 }, (_, i) => from * (to / from) ** (i / STEPS));
}

/** Half as wide (in the logarithm), inside the exponents that make sense. */
function around(best: number, { from, to }: Range): Range {
  const reach = (to / from) ** 0.25;
  return { from: Math.max(EXPONENTS.from, best / reach), to: Math.min(EXPONENTS.to, best * reach) };
}

/** The law of these exponents; a term that would have to be negative is left out. */
function lawWith(points: readonly ScalingPoint[], a: number, b: number): ScalingLaw {
  const terms = points.map(({ parameters, events }) => [1, parameters ** -a, events ** -b]);
  const losses = points.map(point => point.loss);
  let kept = [0, 1, 2];
  for (;;) {
    const solved = leastSquares(
      terms.map(row => kept.map(k => row[k]!)),
      losses,
    );
    const term = (k: number) => solved[kept.indexOf(k)] ?? 0;
    const [E, A, B] = [term(0), term(1), term(2)];
    if (Math.min(E, A, B) < 0) {
      kept = kept.filter((_, i) => solved[i]! >= 0);
      continue;
    }
    const squares = terms.reduce((sum, row, i) => sum + (E + A * row[1]! + B * row[2]! - losses[i]!) ** 2, 0);
    return { E, A, B, a, b, error: Math.sqrt(squares / points.length) };
  }
}

/** Coefficients x that minimise |rows x - y|, by the normal equations with scaled columns. */
function leastSquares(rows: readonly (readonly number[])[], y: readonly number[]): number[] {
  const size = rows[0]!.length;
  const scale = Array.from({ length: size }, (_, j) => Math.hypot(...rows.map(row => row[j]!)));
  const scaled = rows.map(row => row.map((value, j) => value / scale[j]!));
  const matrix = Array.from({ length: size }, (_, i) => [
    ...Array.from({ length: size }, (__, j) => scaled.reduce((sum, row) => sum + row[i]! * row[j]!, 0)),
    scaled.reduce((sum, row, k) => sum + row[i]! * y[k]!, 0),
  ]);
  for (let i = 0; i < size; i++) {
    const pivot = matrix[i]![i]! || Number.EPSILON;
    for (let j = 0; j < size; j++) {
      if (j === i) continue;
      const factor = matrix[j]![i]! / pivot;
      for (let k = i; k <= size; k++) matrix[j]![k]! -= factor * matrix[i]![k]!;
    }
  }
  return matrix.map((row, i) => row[size]! / (row[i]! || Number.EPSILON) / scale[i]!);
}
