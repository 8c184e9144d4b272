// Copies ranges of a store's columns, fast for short and long ranges. i64 times are handled as two 32-bit halves, because
// creating a BigInt per event is slow.

/** Below this many events an element loop is faster than subarray and set (Node 20, Zen 3). */
const SHORT_COPY = 48;

export function copyInts(source: Int32Array, first: number, n: number, target: Int32Array, at: number): void {
  checkRoom(target.length, at + n);
  if (n > SHORT_COPY) target.set(source.subarray(first, first + n), at);
  else for (let i = 0; i < n; i++) target[at + i] = source[first + i] ?? 0;
}

/** `halves` alternates low and high words. As Float64 the times are exact below 2^53. */
export function copyTimes(
  halves: Int32Array,
  first: number,
  n: number,
  target: Float64Array | BigInt64Array,
  at: number,
): void {
  checkRoom(target.length, at + n);
  if (target instanceof BigInt64Array) {
    const into = new Int32Array(target.buffer, target.byteOffset, 2 * target.length);
    into.set(halves.subarray(2 * first, 2 * (first + n)), 2 * at);
    return;
  }
  for (let i = 0; i < n; i++) {
    const low = halves[2 * (first + i)] ?? 0;
    const high = halves[2 * (first + i) + 1] ?? 0;
    target[at + i] = high * 2 ** 32 + (low >>> 0);
  }
}

function checkRoom(length: number, end: number): void {
  if (end > length) throw new RangeError(`the target column has ${length} elements, ${end} are needed`);
}
