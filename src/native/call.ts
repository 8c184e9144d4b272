// Writes an op's arguments into a reused buffer and enqueues the op. Arguments are written in the order in which the op's
// decoder reads them (native/binding/src/ops).

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

/** Destination of a gradient, and whether to accumulate or overwrite. */
export interface GradTarget {
  readonly to: Tensor<'f32'>;
  readonly accumulate: boolean;
}

/** Key of a stream of random numbers: a pure function of these three. */
export interface RandomKey {
  readonly seed: number;
  readonly step: number;
  /** The op's number within the step. */
  readonly purpose: number;
}

/** Drop probability and the key of its random numbers. */
export interface Dropout {
  readonly p: number;
  readonly key: RandomKey;
}

/** Hyper-parameters of all Adam variants; `step` counts from 1. */
export interface AdamHyper {
  readonly lr: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly eps: number;
  readonly weightDecay: number;
  readonly step: number;
}

/** Enough for any op's arguments. */
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

  /** Starts a call. The instance is shared: call `submit` before starting the next one. */
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

  /** An absent optional input is handle 0. */
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
   * Enqueues the op and returns at once; the op waits for work of other streams on its operands. Invalid handles, dtypes and
   * aliased operands throw here; other failures surface when a result is read or at the next sync.
   */
  submit(stream: StreamName = 'compute'): void {
    const fault = this.#addon.submit(this.#device, STREAM_INDEX[stream], this.#op, this.#count);
    if (fault !== null) throw new TurboError(fault);
  }
}
