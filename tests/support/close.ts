// Comparison of float arrays: |got - expected| <= absolute + relative * |expected|.

export interface Tolerance {
  absolute: number;
  relative: number;
}

/** The first mismatch and the largest one in words, or nothing when all is close. */
export function firstMismatch(
  got: Float32Array | Float64Array,
  expected: Float32Array | Float64Array,
  { absolute, relative }: Tolerance,
): string | undefined {
  if (got.length !== expected.length) return `${got.length} elements, expected ${expected.length}`;
  let first = -1;
  let worst = 0;
  for (let i = 0; i < got.length; i++) {
    const error = Math.abs(got[i]! - expected[i]!);
    // Written so that NaN is a mismatch.
    if (!(error <= absolute + relative * Math.abs(expected[i]!)) && first < 0) first = i;
    worst = Math.max(worst, error);
  }
  if (first < 0) return undefined;
  return `element ${first}: ${got[first]}, expected ${expected[first]}; largest error ${worst}`;
}
