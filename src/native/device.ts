// The machine as an accelerator: memory, ordered streams, events. Enqueueing returns at once; `sync` and `read` are the
// only waits, and where a failure on a stream surfaces.

import { availableParallelism } from 'node:os';
import { DTYPES, type Dtype, dtypeOf, type ElementArrays, elements, type UploadArray } from '../tensor/dtype.js';
import { type Layout, type Shape, Tensor, type TensorHome } from '../tensor/tensor.js';
import { type Refusal, TurboError } from '../tensor/turbo-error.js';
import { type Addon, loadAddon, type Stats } from './addon.js';
import { Call, MOST_ARGUMENTS, STREAMS, type StreamName, streamIndex } from './call.js';

export interface DeviceOptions {
  /** Threads in all; by default one for each core the process may use. */
  threads?: number;
  /** Leave the CPU's vector instructions unused. */
  portable?: boolean;
}

export interface UploadOptions {
  stream?: StreamName;
  /** Accept NaN and infinity in f32 data. */
  allowNonFinite?: boolean;
}

/** A point that a stream's enqueued commands have reached. */
export interface StreamEvent {
  readonly mark: number;
}

export class Device implements TensorHome {
  readonly #addon: Addon;
  readonly #id: number;
  readonly #call: Call;

  private constructor(addon: Addon, threads: number, portable: boolean) {
    const values = new Float64Array(MOST_ARGUMENTS);
    this.#addon = addon;
    this.#id = accept(addon.open(threads, portable, values));
    this.#call = new Call(addon, this.#id, values);
  }

  static open(options: DeviceOptions = {}): Device {
    const threads = options.threads ?? availableParallelism();
    if (!Number.isInteger(threads) || threads < 1 || threads > 1024) {
      throw new TurboError({
        kind: 'argument',
        op: 'open',
        input: 'threads',
        expected: '1 to 1024',
        got: String(threads),
      });
    }
    return new Device(loadAddon(), threads, options.portable ?? false);
  }

  /** A new tensor; its contents are unspecified. Few ops take one in panels, the others refuse it. */
  tensor(shape: Shape, dtype?: 'f32', layout?: Layout): Tensor<'f32'>;
  tensor<D extends Dtype>(shape: Shape, dtype: D, layout?: Layout): Tensor<D>;
  tensor(shape: Shape, dtype: Dtype = 'f32', layout: Layout = 'rows'): Tensor {
    const handle = this.#addon.alloc(this.#id, DTYPES.indexOf(dtype), shape[0], shape[1], layout === 'panels');
    return new Tensor(this, accept(handle), dtype, shape, { layout });
  }

  /** A tensor with these contents, one row unless a shape is given. The data is copied before this returns. */
  from(data: Float32Array, shape?: Shape, options?: UploadOptions): Tensor<'f32'>;
  from(data: Uint16Array, shape?: Shape, options?: UploadOptions): Tensor<'f16'>;
  from(data: Int32Array, shape?: Shape, options?: UploadOptions): Tensor<'i32'>;
  from(data: BigInt64Array | Float64Array, shape?: Shape, options?: UploadOptions): Tensor<'i64'>;
  from(data: UploadArray, shape: Shape = [1, data.length], options?: UploadOptions): Tensor {
    const tensor: Tensor = this.tensor(shape, dtypeOf(data));
    try {
      this.upload(tensor, data, options);
    } catch (error) {
      tensor.dispose();
      throw error;
    }
    return tensor;
  }

  /** Overwrites a tensor, in stream order. The data is copied before this returns. */
  upload(tensor: Tensor, data: UploadArray, options: UploadOptions = {}): void {
    const stream = streamIndex(options.stream ?? 'compute');
    check(this.#addon.upload(this.#id, stream, tensor.handle, data, !(options.allowNonFinite ?? false)));
  }

  /** The tensor's contents as they are when the stream gets there. */
  async read<D extends Dtype>(tensor: Tensor<D>, stream: StreamName = 'compute'): Promise<ElementArrays[D]> {
    return elements(tensor.dtype, accept(await this.#addon.read(this.#id, streamIndex(stream), tensor.handle)));
  }

  /** Waits until all that was enqueued is done; throws what failed, after which the streams work again. */
  async sync(...streams: StreamName[]): Promise<void> {
    const names = streams.length > 0 ? streams : STREAMS;
    const outcomes = await Promise.all(names.map(stream => this.#addon.sync(this.#id, streamIndex(stream))));
    for (const refusal of outcomes) check(refusal ?? null);
  }

  /** Starts an op's call; see Call. */
  call(op: string): Call {
    return this.#call.start(op);
  }

  /** The point that a stream's enqueued commands have reached. */
  record(stream: StreamName): StreamEvent {
    return { mark: accept(this.#addon.record(this.#id, streamIndex(stream))) };
  }

  /** Makes a stream wait for an event of another one. A stream that waits for a failed one fails too. */
  wait(stream: StreamName, event: StreamEvent): void {
    check(this.#addon.wait(this.#id, streamIndex(stream), event.mark));
  }

  stats(): Stats {
    return accept(this.#addon.stats(this.#id));
  }

  /** Drops what was not yet begun (sync first to have it done) and gives all memory back. Later calls are refused. */
  dispose(): void {
    this.#addon.close(this.#id);
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  view(handle: number, from: number, cols: number): number {
    return accept(this.#addon.view(this.#id, handle, from, cols));
  }

  /** Through `Tensor.dispose`. A device that was closed has freed everything already. */
  free(handle: number): void {
    const refusal = this.#addon.free(this.#id, handle);
    if (refusal !== null && refusal.kind !== 'closed') throw new TurboError(refusal);
  }
}

/** A file's bytes without reading it: pages come when they are looked at. Writes stay private to this process. */
export function mapFile(path: string): ArrayBuffer {
  return accept(loadAddon().mapFile(path));
}

function accept<T extends number | object>(value: T | Refusal): T {
  if (isRefusal(value)) throw new TurboError(value);
  return value;
}

function isRefusal(value: number | object): value is Refusal {
  return typeof value === 'object' && 'kind' in value;
}

function check(refusal: Refusal | null): void {
  if (refusal !== null) throw new TurboError(refusal);
}
