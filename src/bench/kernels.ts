// `turbogr bench kernels`: every kernel alone, forward and backward, on one thread and on all: GFLOP/s as a share of the FMA
// peak, or GB/s as a share of the read bandwidth for the memory-bound ones, both measured in the same run.

import { availableParallelism } from 'node:os';
import { Command } from '@commander-js/extra-typings';
import { Device } from '../native/device.js';
import { fillConstant } from '../ops/fill.js';
import { Tape } from '../ops/tape.js';
import type { Tensor } from '../tensor/tensor.js';
import { countNumber } from '../util/number-flags.js';
import { formatCount, formatShare, table } from '../util/terminal.js';
import { FmaPeak, median, readBandwidth } from './measuring.js';
import { type KernelSize, kernelCases, type Work } from './kernel-cases.js';

interface KernelRow {
  op: string;
  pass: 'forward' | 'backward' | 'step';
  threads: number;
  ms: number;
  gflops?: number;
  /** Share of the FMA peak of the same number of threads. */
  share?: number;
  gb_per_s?: number;
  /** Share of the read bandwidth of the same number of threads. */
  bandwidth_share?: number;
}

/** Repetitions of a kernel: `least` to `most`, stopping once `seconds` have passed, so that a short disturbance is not the median. */
const ROUNDS = { least: 7, most: 50, seconds: 0.7 };

export function benchKernelsCommand() {
  return new Command('kernels')
    .description('every kernel alone, as a share of the FMA peak or of the memory bandwidth')
    .option('--d <width>', 'model width', countNumber, 256)
    .option('--heads <count>', 'attention heads', countNumber, 4)
    .option('--tokens <count>', 'tokens, in sequences of lognormal length', countNumber, 8192)
    .option('--threads <count>', 'threads to measure in addition to one (default: all cores)', countNumber)
    .option('--only <op>', 'only ops whose name contains this')
    .option('--json', 'one JSON object')
    .action(async ({ json, only = '', threads = availableParallelism(), ...size }) => {
      const reports = [];
      for (const count of new Set([1, threads])) reports.push(await benchKernels(size, { threads: count, only }));
      const peaks = reports.map(report => report.peak);
      const rows = reports.flatMap(report => report.rows);
      process.stdout.write(`${json ? JSON.stringify({ ...size, peaks, rows }) : describe(peaks, rows)}\n`);
    });
}

interface Peak {
  threads: number;
  isa: string;
  peak_gflops: number;
  read_gb_per_s: number;
}

export async function benchKernels(
  size: KernelSize,
  { threads, only }: { threads: number; only: string },
): Promise<{ peak: Peak; rows: KernelRow[] }> {
  using device = Device.open({ threads });
  const bandwidth = await readBandwidth(device);
  const peak = new FmaPeak(device);
  const bench = new Bench(device, peak);
  const { tapeCases, plainCases } = await kernelCases(device, size);
  const timed: [string, KernelRow['pass'], Work, number][] = [];
  for (const { op, forward, inputs, build } of tapeCases.filter(({ op }) => op.includes(only))) {
    const seconds = await bench.tape(build, inputs);
    timed.push([op, 'forward', forward, seconds.forward]);
    timed.push([op, 'backward', backwardWork(forward), seconds.backward]);
  }
  for (const { op, work, run } of plainCases.filter(({ op }) => op.includes(only))) {
    timed.push([op, 'step', work, await bench.plain(run)]);
  }
  const most = median(peak.samples);
  const rows = timed.map(([op, pass, { flops, bytes }, seconds]) => ({
    op,
    pass,
    threads,
    ms: seconds * 1e3,
    ...(flops && { gflops: flops / seconds / 1e9, share: flops / seconds / most }),
    ...(bytes && { gb_per_s: bytes / seconds / 1e9, bandwidth_share: bytes / seconds / bandwidth }),
  }));
  const { isa } = device.stats();
  return { peak: { threads, isa, peak_gflops: most / 1e9, read_gb_per_s: bandwidth / 1e9 }, rows };
}

/** Two products per forward product; twice the bytes. */
function backwardWork({ flops, bytes }: Work): Work {
  return { ...(flops && { flops: 2 * flops }), ...(bytes && { bytes: 2 * bytes }) };
}

/** Whether a kernel was timed often and long enough; the first round is a warm-up. */
function enough(...passes: number[][]): boolean {
  const rounds = passes[0]!.length - 1;
  const seconds = passes.flat().reduce((sum, one) => sum + one, 0);
  return rounds >= ROUNDS.most || (rounds >= ROUNDS.least && seconds >= ROUNDS.seconds);
}

/** Times commands on the stream itself, between two clock ops, so that enqueueing and promises are not included. */
class Bench {
  readonly #device: Device;
  readonly #peak: FmaPeak;
  readonly #clocks: Tensor<'i64'>;

  constructor(device: Device, peak: FmaPeak) {
    this.#device = device;
    this.#peak = peak;
    this.#clocks = device.tensor([1, 2], 'i64');
  }

  /** Median seconds of forward and of backward. */
  async tape(
    build: (tape: Tape) => Tensor<'f32'>,
    inputs: readonly Tensor<'f32'>[],
  ): Promise<{ forward: number; backward: number }> {
    const forward: number[] = [];
    const backward: number[] = [];
    while (!enough(forward, backward)) {
      await this.#peak.sample();
      using tape = new Tape(this.#device, { training: true, seed: 1, step: forward.length });
      for (const input of inputs) tape.watch(input);
      this.#clock(0);
      const y = build(tape);
      this.#clock(1);
      forward.push(await this.#elapsed());
      using dy = this.#device.tensor(y.shape, 'f32', y.layout);
      fillConstant(this.#device, dy, 1e-3);
      tape.seedGrad(y, dy);
      this.#clock(0);
      tape.backward();
      this.#clock(1);
      backward.push(await this.#elapsed());
    }
    return { forward: median(forward.slice(1)), backward: median(backward.slice(1)) };
  }

  async plain(run: () => void): Promise<number> {
    const seconds: number[] = [];
    while (!enough(seconds)) {
      await this.#peak.sample();
      this.#clock(0);
      run();
      this.#clock(1);
      seconds.push(await this.#elapsed());
    }
    return median(seconds.slice(1));
  }

  #clock(index: number): void {
    this.#device.call('clock').number(index).tensor(this.#clocks).submit();
  }

  async #elapsed(): Promise<number> {
    const [from, to] = await this.#device.read(this.#clocks);
    return Number(to! - from!) * 1e-9;
  }
}

function describe(peaks: readonly Peak[], rows: readonly KernelRow[]): string {
  const head = peaks.map(
    ({ threads, isa, peak_gflops, read_gb_per_s }) =>
      `${threads} thread${threads > 1 ? 's' : ''} (${isa}): FMA peak ${peak_gflops.toFixed(1)} GFLOP/s, read ${read_gb_per_s.toFixed(1)} GB/s`,
  );
  const body = rows.map(row => [
    row.op,
    row.pass,
    formatCount(row.threads),
    row.ms.toFixed(2),
    row.gflops === undefined ? '-' : row.gflops.toFixed(1),
    row.share === undefined ? '-' : formatShare(row.share, 1),
    row.gb_per_s === undefined ? '-' : row.gb_per_s.toFixed(1),
    row.bandwidth_share === undefined ? '-' : formatShare(row.bandwidth_share, 1),
  ]);
  const names = ['op', 'pass', 'threads', 'ms', 'GFLOP/s', 'of peak', 'GB/s', 'of bandwidth'];
  return [...head, '', table(names, body), '', 'Above 100 % of the bandwidth: the data stays in cache.'].join('\n');
}
