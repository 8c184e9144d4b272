// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
// Each number is a pure function of (seed, purpose, a, b, position), so any draw can be recomputed without replaying the
// earlier ones, and adding a consumer never shifts another one's numbers. Not for cryptography.

const MULTIPLIER_0 = 0xd2511f53;
const MULTIPLIER_1 = 0xcd9e8d57;
const WEYL_0 = 0x9e3779b9;
const WEYL_1 = 0xbb67ae85;
const ROUNDS = 10;
const TWO_32 = 0x1_0000_0000;

/** High 32 bits of the 64-bit product, computed from 16-bit halves. */
function multiplyHigh(x: number, y: number): number {
  const xLow = x & 0xffff;
  const xHigh = x >>> 16;
  const yLow = y & 0xffff;
  const yHigh = y >>> 16;
  const middle = xHigh * yLow + ((xLow * yLow) >>> 16);
  const carry = xLow * yHigh + (middle & 0xffff);
  return (xHigh * yHigh + (middle >>> 16) + (carry >>> 16)) | 0;
}

/** One block: four words of `out` from four words of `counter` under two words of `key`. `out` may be `counter`. */
export function philox(key: Uint32Array, counter: Uint32Array, out: Uint32Array): void {
  let k0 = key[0]! | 0;
  let k1 = key[1]! | 0;
  let c0 = counter[0]! | 0;
  let c1 = counter[1]! | 0;
  let c2 = counter[2]! | 0;
  let c3 = counter[3]! | 0;
  for (let round = 0; round < ROUNDS; round++) {
    const high0 = multiplyHigh(MULTIPLIER_0, c0);
    const high1 = multiplyHigh(MULTIPLIER_1, c2);
    const low0 = Math.imul(MULTIPLIER_0, c0);
    const low1 = Math.imul(MULTIPLIER_1, c2);
    c0 = high1 ^ c1 ^ k0;
    c1 = low1;
    c2 = high0 ^ c3 ^ k1;
    c3 = low0;
    k0 = (k0 + WEYL_0) | 0;
    k1 = (k1 + WEYL_1) | 0;
  }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
}

/** The counter word of a purpose (FNV-1a hash of its name), which keeps streams apart without a registry. */
function purposeWord(purpose: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < purpose.length; i++) hash = Math.imul(hash ^ purpose.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

/**
 * The numbers of one purpose. `stream(a, b)` moves to the start of another stream (an epoch, a user, ...);
 * two streams share no number, each is 2^34 words long.
 */
export class Random {
  readonly #key: Uint32Array;
  readonly #counter: Uint32Array;
  readonly #block = new Uint32Array(4);
  #used = 4;
  #spareNormal = Number.NaN;

  constructor(seed: number, purpose: string, a = 0, b = 0) {
    if (!Number.isSafeInteger(seed) || seed < 0) {
      throw new RangeError(`seed must be a whole number from 0 to 2^53 - 1, got ${seed}`);
    }
    this.#key = Uint32Array.of(seed, Math.floor(seed / TWO_32));
    this.#counter = Uint32Array.of(0, a, b, purposeWord(purpose));
  }

  /** Rewinds to position 0 of stream (a, b), each below 2^32. */
  stream(a: number, b = 0): this {
    this.#counter[0] = 0;
    this.#counter[1] = a;
    this.#counter[2] = b;
    this.#used = 4;
    this.#spareNormal = Number.NaN;
    return this;
  }

  uint32(): number {
    if (this.#used === 4) {
      philox(this.#key, this.#counter, this.#block);
      this.#counter[0]!++;
      this.#used = 0;
    }
    return this.#block[this.#used++]!;
  }

  /** Uniform in the open interval (0, 1), with 32 bits of resolution. */
  uniform(): number {
    return (this.uint32() + 0.5) / TWO_32;
  }

  /** Uniform whole number in [0, n), unbiased; n at most 2^32. */
  below(n: number): number {
    const limit = TWO_32 - (TWO_32 % n);
    let word = this.uint32();
    while (word >= limit) word = this.uint32();
    return word % n;
  }

  /** Standard normal (Box-Muller; the second of each pair is kept for the next call). */
  normal(): number {
    if (!Number.isNaN(this.#spareNormal)) {
      const spare = this.#spareNormal;
      this.#spareNormal = Number.NaN;
      return spare;
    }
    const radius = Math.sqrt(-2 * Math.log(this.uniform()));
    const angle = 2 * Math.PI * this.uniform();
    this.#spareNormal = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  }

  /** Exponential with mean 1. */
  exponential(): number {
    return -Math.log(this.uniform());
  }

  /** Uniformly random order, in place (Fisher-Yates). */
  shuffle(values: Int32Array | Uint32Array | Float64Array): void {
    for (let i = values.length - 1; i > 0; i--) {
      const j = this.below(i + 1);
      const swapped = values[i]!;
      values[i] = values[j]!;
      values[j] = swapped;
    }
  }
}
