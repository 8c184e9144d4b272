// The gradient of one activation during backward. Different ops write column ranges of it ([U|V|Q|K]), so it tracks which
// columns are written: the first write overwrites, later ones accumulate, and gaps are zeroed when all columns are read.

import type { GradTarget } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';

type ColumnRange = readonly [from: number, to: number];

export class GradBuffer {
  readonly tensor: Tensor<'f32'>;
  readonly #device: Device;
  /** Written column ranges: ascending, disjoint. */
  #written: ColumnRange[];

  private constructor(device: Device, tensor: Tensor<'f32'>, written: ColumnRange[]) {
    this.#device = device;
    this.tensor = tensor;
    this.#written = written;
  }

  static empty(device: Device, like: Tensor): GradBuffer {
    return new GradBuffer(device, device.tensor(like.shape, 'f32', like.layout), []);
  }

  /** Wraps an existing gradient and takes ownership. */
  static holding(device: Device, tensor: Tensor<'f32'>): GradBuffer {
    return new GradBuffer(device, tensor, [[0, tensor.cols]]);
  }

  /** Destination of the gradient of columns [from, from + cols). */
  target(from: number, cols: number): GradTarget {
    const to = from + cols;
    const gaps = this.#gaps(from, to);
    const fresh = gaps.length === 1 && gaps[0]![0] === from && gaps[0]![1] === to;
    if (!fresh) this.#zero(gaps);
    if (gaps.length > 0) this.#written = merged([...this.#written, [from, to]]);
    const whole = from === 0 && cols === this.tensor.cols;
    return { to: whole ? this.tensor : this.tensor.columns(from, cols), accumulate: !fresh };
  }

  /** The whole gradient; unwritten columns are zero. */
  complete(): Tensor<'f32'> {
    this.#zero(this.#gaps(0, this.tensor.cols));
    this.#written = [[0, this.tensor.cols]];
    return this.tensor;
  }

  #gaps(from: number, to: number): ColumnRange[] {
    const gaps: ColumnRange[] = [];
    let at = from;
    for (const [start, end] of this.#written) {
      if (end <= at || start >= to) continue;
      if (start > at) gaps.push([at, start]);
      at = end;
    }
    if (at < to) gaps.push([at, to]);
    return gaps;
  }

  #zero(gaps: ColumnRange[]): void {
    for (const [from, to] of gaps) {
      const columns = this.tensor.columns(from, to - from);
      this.#device.call('fill_constant').number(0).tensor(columns).submit();
      columns.dispose();
    }
  }
}

function merged(ranges: ColumnRange[]): ColumnRange[] {
  const result: [number, number][] = [];
  for (const [from, to] of ranges.sort((a, b) => a[0] - b[0])) {
    const last = result.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else result.push([from, to]);
  }
  return result;
}
