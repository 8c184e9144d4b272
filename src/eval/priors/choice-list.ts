// The cases to which priors are fitted: for each, the target, then relevant alternatives, then uniform draws, which represent all
// other items.
//
// A alternatives of all cases, K sparse components.

import { Random } from '../../util/random.js';
import { FEATURES, ITEM_FEATURES, SPARSE_COMPONENTS, SPARSE_FEATURES } from '../../config/prior-weights.js';
import type { SparseFeatures } from './features.js';
import type { Choices } from './fit-weights.js';
import type { LogPriors } from './log-priors.js';
import { componentsOf, type Mixture } from './mixture.js';
import type { CasesWithTargets } from './prior-cases.js';

/** Uniform draws among the alternatives of a case. */
const DRAWS = 50;
const F = SPARSE_FEATURES.length;
const K = SPARSE_COMPONENTS.length;
/** Columns that follow from the shares of the mixture. */
const BASE = ITEM_FEATURES.length;
const MIXTURE = FEATURES.length - 1;

/** The alternatives of a case: its target and competing items; empty if the target is excluded from the ranking. */
export interface Alternatives {
  /** The target first. */
  chosen: number[];
  /** Draws that represent all items neither chosen nor excluded, and the log of the number that each represents. */
  drawn: number[];
  weight: number;
  sparse: SparseFeatures;
}

/** The alternatives of case c of a batch. `top`: the model's best items. */
export function alternatives(
  batch: CasesWithTargets,
  c: number,
  { log, top }: { log: LogPriors; top: Int32Array },
): Alternatives {
  const target = batch.targets[c]!;
  const left = batch.excluded[c]!;
  const sparse = log.sparse(batch.histories[c]!);
  if (left.has(target)) return { chosen: [], drawn: [], weight: 0, sparse };
  const chosen = new Set([target, ...sparse.items, ...top]);
  chosen.delete(-1);
  const items = log.counts.length;
  const random = new Random(0, 'alternatives', batch.users[c], batch.histories[c]!.length);
  const draws = Array.from({ length: DRAWS }, () => random.below(items));
  const drawn = draws.filter(item => !chosen.has(item) && !left.has(item));
  const others = items - new Set([...chosen, ...left]).size;
  return {
    chosen: [...chosen].filter(item => !left.has(item)),
    drawn,
    weight: Math.log(others / drawn.length),
    sparse,
  };
}

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
  #size = 0;

  constructor(log: LogPriors) {
    this.#log = log;
  }

  get cases(): number {
    return this.starts.length - 1;
  }

  /** `logits`: the model's, of the chosen and then of the drawn. */
  add({ chosen, drawn, weight, sparse }: Alternatives, logits: Float64Array): void {
    this.targets.push(componentsOf(this.#log, sparse, chosen[0]!));
    [...chosen, ...drawn].forEach((item, i) => {
      this.#push({ item, offset: i < chosen.length ? 0 : weight, logit: logits[i]!, sparse });
    });
    this.starts.push(this.#size);
  }

  /** Fills in the mixture's feature of the alternatives. */
  mix(mixture: Mixture): void {
    for (let a = 0; a < this.#size; a++) {
      const item = this.#items[a]!;
      this.x[a * FEATURES.length + BASE] = mixture.base(item);
      this.x[a * FEATURES.length + MIXTURE] = mixture.added(item, this.#parts, a * K);
    }
  }

  #push({ item, offset, logit, sparse }: Alternative): void {
    const width = FEATURES.length;
    const row = sparse.find(item);
    this.x = roomy(this.x, (this.#size + 1) * width);
    this.offset = roomy(this.offset, this.#size + 1);
    this.#parts = roomy(this.#parts, (this.#size + 1) * K);
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
  logit: number;
  sparse: SparseFeatures;
}

/** A copy with capacity `size`. */
function roomy(values: Float32Array<ArrayBuffer>, size: number): Float32Array<ArrayBuffer> {
  if (size <= values.length) return values;
  const larger = new Float32Array(2 * values.length);
  larger.set(values);
  return larger;
}
