// One op's arguments, written into a buffer that every call reuses, and its enqueueing. Arguments go in the order in
// which the op's decoder reads them (native/binding/src/ops).

import type { Tensor } from '../tensor/tensor.js';
import { TurboError } from '../tensor/turbo-error.js';
import type { Addon } from './addon.js';

/** In the order of the addon's numbers. */
export const STREAMS = ['compute', 'sparse', 'comm'] as const;
export type StreamName = (typeof STREAMS)[number];

const STREAM_INDEX: Readonly<Record<StreamName, number>> = { compute: 0, sparse: 1, comm: 2 };

export function streamIndex(stream: StreamName): number {
  return STREAM_INDEX[stream];
}

/** Where a gradient goes, and whether it adds to what is there. */
export interface GradTarget {
  readonly to: Tensor<'f32'>;
  readonly accumulate: boolean;
}

/** Names a stream of random numbers: a pure function of these three. */
export interface RandomKey {
  readonly seed: number;
  readonly step: number;
  /** The op's own number within the step. */
  readonly purpose: number;
}

/** Drop probability and its random numbers. */
export interface Dropout {
  readonly p: number;
  readonly key: RandomKey;
}

/** Hyper-parameters of Adam in all its forms; `step` counts from 1. */
export interface AdamHyper {
  readonly lr: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly eps: number;
  readonly weightDecay: number;
  readonly step: number;
}

/** Room for any op's arguments. */
export const MOST_ARGUMENTS = 256;

export class Call {
  readonly #addon: Addon;
  readonly #device: number;
  readonly #values: Float64Array;
  readonly #ops: ReadonlyMap<string, number>;
  #count = 0;
  #op = 0;

  /** `values` is the buffer that the device was opened with. */
  constructor(addon: Addon, device: number, values: Float64Array) {
    this.#addon = addon;
    this.#device = device;
    this.#values = values;
    this.#ops = new Map(addon.opNames().map((name, index) => [name, index]));
  }

  /** Starts a call. The instance is shared: finish with `submit` before the next one starts. */
  start(op: string): this {
    const index = this.#ops.get(op);
    if (index === undefined) {
      throw new TurboError({
        kind: 'op',
        op,
        input: '',
        expected: 'an op of the native core (is the binary older than the sources? npm run build:native)',
        got: 'an unknown name',
      });
    }
    this.#op = index;
    this.#count = 0;
    return this;
  }

  number(value: number): this {
    this.#values[this.#count++] = value;
    return this;
  }

  flag(value: boolean): this {
    return this.number(value ? 1 : 0);
  }

  /** Absent is handle 0, for inputs that may be. */
  tensor(tensor: Tensor | undefined): this {
    return this.number(tensor === undefined ? 0 : tensor.handle);
  }

  grad(target: GradTarget | undefined): this {
    return this.tensor(target?.to).flag(target?.accumulate ?? false);
  }

  random(key: RandomKey): this {
    return this.number(key.seed).number(key.step).number(key.purpose);
  }

  dropout(dropout: Dropout | undefined): this {
    if (dropout === undefined) return this.number(0).number(0).number(0).number(0);
    return this.number(dropout.p).random(dropout.key);
  }

  adam(hyper: AdamHyper): this {
    return this.number(hyper.lr)
      .number(hyper.beta1)
      .number(hyper.beta2)
      .number(hyper.eps)
      .number(hyper.weightDecay)
      .number(hyper.step);
  }

  /**
   * Enqueues the op and returns at once; it waits for what other streams still do to its operands. Bad handles, dtypes and
   * aliased operands throw here, all else when a result is read or at the next sync.
   */
  submit(stream: StreamName = 'compute'): void {
    const fault = this.#addon.submit(this.#device, STREAM_INDEX[stream], this.#op, this.#count);
    if (fault !== null) throw new TurboError(fault);
  }
}
