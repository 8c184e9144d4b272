// The gradient accumulated by a row source: contributions while they are few, then a list to which further ones are added.

import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import { embeddingReduce } from './embedding-reduce.js';
import { disposeRowList, type RowList, sparseAdd } from './row-list.js';
import type { Contribution, RowSource } from './row-source.js';

/** Contributions that are summed at once. Part of the definition of the sum: another number would give other bits. */
const MOST = 8;

export class RowGradient {
  readonly #device: Device;
  readonly #source: RowSource;
  #contributions: Contribution[] = [];
  #list: RowList | undefined;

  constructor(device: Device, source: RowSource) {
    this.#device = device;
    this.#source = source;
  }

  get isEmpty(): boolean {
    return this.#contributions.length === 0 && this.#list === undefined;
  }

  /** The whole gradient as contributions, if it is not yet a list. */
  get contributions(): readonly Contribution[] | undefined {
    return this.#list ? undefined : this.#contributions;
  }

  add(contribution: Contribution): void {
    if (this.#contributions.length === MOST) this.#reduce();
    this.#contributions.push(contribution);
  }

  /** The whole gradient as one list, owned by the caller; the gradient is empty afterwards. */
  takeList(stream?: StreamName): RowList {
    if (this.#contributions.length > 0 || !this.#list) this.#reduce(stream);
    const list = this.#list!;
    this.#list = undefined;
    return list;
  }

  clear(): void {
    this.#contributions = [];
    if (this.#list) disposeRowList(this.#list);
    this.#list = undefined;
  }

  #reduce(stream?: StreamName): void {
    const [left, right] = [this.#list, embeddingReduce(this.#device, this.#source, this.#contributions, stream)];
    this.#contributions = [];
    this.#list = right;
    if (!left) return;
    this.#list = sparseAdd(this.#device, { left, right, vocabulary: this.#source.vocabulary }, stream);
    disposeRowList(left);
    disposeRowList(right);
  }
}
