// The cases that priors are fitted to: of each the target first, then the alternatives that matter, then items drawn
// uniformly, which stand for all others.
//
// A alternatives of all cases, K sparse components.

import { Random } from '../../util/random.js';
import { ITEM_FEATURES, SPARSE_COMPONENTS, SPARSE_FEATURES, type SparseFeatures } from './features.js';
import type { Choices } from './fit-weights.js';
import type { LogPriors } from './log-priors.js';
import { componentsOf, type Mixture } from './mixture.js';
import type { CasesWithTargets } from './prior-cases.js';
import type { LogitRows } from './prior-scorer.js';
import { FEATURES } from './weights.js';

/** Uniform draws among the alternatives of a case. */
const DRAWS = 50;
const F = SPARSE_FEATURES.length;
const K = SPARSE_COMPONENTS.length;
/** Columns that follow from the shares of the mixture. */
const BASE = ITEM_FEATURES.length;
const MIXTURE = FEATURES.length - 1;

/** A growing list. */
export class ChoiceList implements Choices {
  x = new Float32Array(1 << 16);
  offset = new Float32Array(1 << 12);
  readonly starts = [0];
  /** Components of the target of each case. */
  readonly targets: Float64Array[] = [];
  /** [A] */
  readonly #items: number[] = [];
  /** [A * K] */
  #parts = new Float32Array(1 << 16);
  readonly #log: LogPriors;
  readonly #logits: LogitRows;
  #size = 0;

  constructor(log: LogPriors, logits: LogitRows) {
    this.#log = log;
    this.#logits = logits;
  }

  get cases(): number {
    return this.starts.length - 1;
  }

  /** Case c of a batch; one whose target is left out of the ranking says nothing. */
  add(batch: CasesWithTargets, c: number, top: Int32Array): void {
    const target = batch.targets[c]!;
    const left = batch.excluded[c]!;
    if (left.has(target)) return;
    const D = this.#logits.width;
    const state = batch.states.subarray(c * D, (c + 1) * D);
    const sparse = this.#log.sparse(batch.histories[c]!);
    this.targets.push(componentsOf(this.#log, sparse, target));
    const push = (item: number, offset: number): void => this.#push({ item, offset, state, sparse });
    const k = top.length / batch.users.length;
    const chosen = new Set([target, ...sparse.items, ...top.subarray(c * k, (c + 1) * k)]);
    chosen.delete(-1);
    for (const item of chosen) if (!left.has(item)) push(item, 0);
    const drawn = this.#draw(batch, c, chosen);
    const others = this.#log.counts.length - new Set([...chosen, ...left]).size;
    for (const item of drawn) push(item, Math.log(others / drawn.length));
    this.starts.push(this.#size);
  }

  /** Items that stand for all that are neither chosen nor left out. */
  #draw(batch: CasesWithTargets, c: number, chosen: ReadonlySet<number>): number[] {
    const items = this.#log.counts.length;
    const random = new Random(0, 'alternatives', batch.users[c], batch.histories[c]!.length);
    const draws = Array.from({ length: DRAWS }, () => random.below(items));
    return draws.filter(item => !chosen.has(item) && !batch.excluded[c]!.has(item));
  }

  /** Fills in what a mixture says of the alternatives. */
  mix(mixture: Mixture): void {
    for (let a = 0; a < this.#size; a++) {
      const item = this.#items[a]!;
      this.x[a * FEATURES.length + BASE] = mixture.base(item);
      this.x[a * FEATURES.length + MIXTURE] = mixture.added(item, this.#parts, a * K);
    }
  }

  #push({ item, offset, state, sparse }: Alternative): void {
    const width = FEATURES.length;
    const row = sparse.find(item);
    this.x = roomy(this.x, (this.#size + 1) * width);
    this.offset = roomy(this.offset, this.#size + 1);
    this.#parts = roomy(this.#parts, (this.#size + 1) * K);
    const D = state.length;
    let logit = 0;
    for (let d = 0; d < D; d++) logit += state[d]! * this.#logits.rows[item * D + d]!;
    let at = this.#size * width;
    this.x[at++] = logit;
    for (const popularity of this.#log.popularities) this.x[at++] = popularity[item]!;
    at++;
    if (row !== undefined) {
      for (let f = 0; f < F; f++) this.x[at + f] = sparse.values[row * F + f]!;
      for (let k = 0; k < K; k++) this.#parts[this.#size * K + k] = sparse.parts[row * K + k]!;
    }
    this.#items.push(item);
    this.offset[this.#size++] = offset;
  }
}

interface Alternative {
  item: number;
  offset: number;
  /** [D] */
  state: Float32Array;
  sparse: SparseFeatures;
}

/** The same values with room for `size` of them. */
function roomy(values: Float32Array<ArrayBuffer>, size: number): Float32Array<ArrayBuffer> {
  if (size <= values.length) return values;
  const larger = new Float32Array(2 * values.length);
  larger.set(values);
  return larger;
}
