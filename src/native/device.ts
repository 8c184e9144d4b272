// The CPU as an accelerator: memory and ordered streams. Enqueueing returns at once; `sync` and `read` are the only waits,
// and the places where failures of a stream surface.

import { availableParallelism } from 'node:os';
import type { Span } from '../events/chrome-trace.js';
import { DTYPES, type Dtype, dtypeOf, type ElementArrays, elements, type UploadArray } from '../tensor/dtype.js';
import { type Layout, type Shape, Tensor, type TensorHome } from '../tensor/tensor.js';
import { type NativeFault, TurboError } from '../tensor/turbo-error.js';
import { UserError } from '../util/errors.js';
import { type Addon, loadAddon, type Stats } from './addon.js';
import { Call, MOST_ARGUMENTS, STREAMS, type StreamName, streamIndex } from './call.js';

export interface DeviceOptions {
  /** Threads of the compute stream; default: one per core available to the process. */
  threads?: number;
  /** Threads of the sparse stream, which runs concurrently (default 1). The comm stream has one. */
  sparseThreads?: number;
  /** Instruction set of the kernels; default: that of `TURBOGR_KERNELS`, or else the best that this CPU has. */
  kernels?: KernelSet;
}

/** Environment variable that names the kernels of a whole command: to compare them, or to get the bits of another machine. */
export const KERNELS_VARIABLE = 'TURBOGR_KERNELS';

/** `avx2` and `avx512` give the same bits, `portable` others. */
export type KernelSet = 'best' | 'avx512' | 'avx2' | 'portable';

export interface UploadOptions {
  stream?: StreamName;
  /** Accept NaN and infinity in f32 data. */
  allowNonFinite?: boolean;
}

export class Device implements TensorHome {
  readonly #addon: Addon;
  readonly #id: number;
  #home: StreamName | undefined;
  readonly #call: Call;

  private constructor(addon: Addon, [threads, sparseThreads]: [number, number], kernels: string) {
    const values = new Float64Array(MOST_ARGUMENTS);
    this.#addon = addon;
    this.#id = accept(addon.open(threads, sparseThreads, kernels, values));
    this.#call = new Call(addon, this.#id, values);
  }

  /** `addon` is for tests. */
  static open(options: DeviceOptions = {}, addon: Addon = loadAddon()): Device {
    const { threads = availableParallelism(), sparseThreads = 1 } = options;
    for (const [input, count] of Object.entries({ threads, sparseThreads })) {
      if (!Number.isInteger(count) || count < 1 || count > 1024) {
        throw new TurboError({ kind: 'argument', op: 'open', input, expected: '1 to 1024', got: String(count) });
      }
    }
    const variable = process.env[KERNELS_VARIABLE];
    try {
      return new Device(addon, [threads, sparseThreads], options.kernels ?? variable ?? 'best');
    } catch (error) {
      const named = options.kernels === undefined && error instanceof TurboError && error.input === 'kernels';
      if (!named) throw error;
      const message = `${KERNELS_VARIABLE} is ${error.got}: expected ${error.expected}.`;
      throw new UserError('bad-kernels', message, 'Set it to one of these, or unset it.', { cause: error });
    }
  }

  /** A new tensor with unspecified contents. Only a few ops accept the panel layout; the others refuse it. */
  tensor(shape: Shape, dtype?: 'f32', layout?: Layout): Tensor<'f32'>;
  tensor<D extends Dtype>(shape: Shape, dtype: D, layout?: Layout): Tensor<D>;
  tensor(shape: Shape, dtype: Dtype = 'f32', layout: Layout = 'rows'): Tensor {
    const handle = this.#addon.alloc(this.#id, DTYPES.indexOf(dtype), shape[0], shape[1], layout === 'panels');
    return new Tensor(this, accept(handle), dtype, shape, { layout });
  }

  /** A new zero tensor in an unnamed file in `folder`; it may be larger than memory. */
  mappedTensor<D extends Dtype>(shape: Shape, dtype: D, folder: string): Tensor<D> {
    const handle = this.#addon.allocMapped(this.#id, folder, DTYPES.indexOf(dtype), shape[0], shape[1]);
    return new Tensor(this, accept(handle), dtype, shape);
  }

  /** A tensor with these contents; default shape: one row. The data is copied before this returns. */
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

  /** The tensor's contents once the stream has reached this point; rejects if they result from failed work. */
  read<D extends Dtype>(tensor: Tensor<D>, stream: StreamName = 'compute'): Promise<ElementArrays[D]> {
    const contents = this.#read(tensor, stream);
    contents.catch(() => undefined); // an unawaited rejection must not end the process
    return contents;
  }

  async #read<D extends Dtype>(tensor: Tensor<D>, stream: StreamName): Promise<ElementArrays[D]> {
    return elements(tensor.dtype, accept(await this.#addon.read(this.#id, streamIndex(stream), tensor.handle)));
  }

  /**
   * Waits until everything enqueued on all streams is done. Throws the first failure that no `read` has reported; afterwards
   * the outputs of failed work may be used again.
   */
  async sync(): Promise<void> {
    check((await this.#addon.sync(this.#id)) ?? null);
  }

  /** Starts an op's call; see Call. */
  call(op: string): Call {
    return this.#call.start(op);
  }

  /**
   * Assigns tensors created from now on to a stream: they get no memory that another stream still uses, so that streams do not
   * wait for each other because of memory reuse. By default a freed block is reused at once, and its new user waits. Returns the
   * previous assignment.
   */
  home(stream?: StreamName): StreamName | undefined {
    const previous = this.#home;
    check(this.#addon.home(this.#id, stream && streamIndex(stream)));
    this.#home = stream;
    return previous;
  }

  /** Labels the spans of ops enqueued from now on; -1 for none. `stage` is a number chosen by the caller. */
  tag(lane: number, stage = -1): void {
    check(this.#addon.tag(this.#id, lane, stage));
  }

  /** Starts recording spans, or stops and discards them. Each stream keeps its last 65,536. */
  recordSpans(on: boolean): void {
    check(this.#addon.recordSpans(this.#id, on));
  }

  /** Current time on the spans' clock, in microseconds. */
  clock(): number {
    return this.#addon.spanClock() / 1e3;
  }

  /** Spans recorded since the last call. */
  spans(): { spans: Span[]; lost: number } {
    const table = accept(this.#addon.spans(this.#id));
    const spans = table.start.map(
      (start, i): Span => ({
        stream: STREAMS[table.stream[i]!]!,
        op: table.names[table.name[i]!]!,
        lane: table.lane[i]!,
        stage: table.stage[i]!,
        start: start / 1e3,
        end: table.end[i]! / 1e3,
      }),
    );
    return { spans, lost: table.lost };
  }

  stats(): Stats {
    return accept(this.#addon.stats(this.#id));
  }

  /** Drops commands that have not started (call sync first to finish them) and frees all memory. Later calls are refused. */
  dispose(): void {
    this.#addon.close(this.#id);
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  view(handle: number, from: number, cols: number): number {
    return accept(this.#addon.view(this.#id, handle, from, cols));
  }

  range(handle: number, from: number, count: number): number {
    return accept(this.#addon.range(this.#id, handle, from, count));
  }

  /** Called by `Tensor.dispose`. A closed device has already freed everything. */
  free(handle: number): void {
    const fault = this.#addon.free(this.#id, handle);
    if (fault !== null && fault.kind !== 'closed') throw new TurboError(fault);
  }
}

/**
 * Memory-maps a file: pages are read on first access. Writes stay private to this process. If the file shrinks, bytes beyond
 * its end read as zeros and every later upload is refused (kind `file`).
 */
export function mapFile(path: string): ArrayBuffer {
  return accept(loadAddon().mapFile(path));
}

function accept<T extends number | object>(value: T | NativeFault): T {
  if (isFault(value)) throw new TurboError(value);
  return value;
}

function isFault(value: number | object): value is NativeFault {
  return typeof value === 'object' && 'kind' in value;
}

function check(fault: NativeFault | null): void {
  if (fault !== null) throw new TurboError(fault);
}
