// Reduces a dense gradient over all ranks. It is split into one piece per rank; each piece goes to its owner, which sums in
// the order of the lane tree and then either updates its piece (slice-sums.ts) or sends the sum to all ranks.

import type { Communicator } from '../dist/comm/communicator.js';
import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { DenseGradient } from '../ops/dense-gradient.js';
import { add } from '../ops/elementwise.js';
import type { Tensor } from '../tensor/tensor.js';
import { LaneSum, putNodes } from './lane-tree.js';
import type { RankPart } from './rank-nodes.js';

export class DenseSum {
  readonly #device: Device;
  readonly #world: Communicator;
  /** Count tensors on the device, cached by value. */
  readonly #counts = new Map<string, Tensor<'i64'>>();
  /** Placeholder for a rank that sends nothing. */
  readonly #nothing: Tensor<'f32'>;

  constructor(device: Device, world: Communicator) {
    this.#device = device;
    this.#world = world;
    this.#nothing = device.from(new Float32Array(1));
  }

  /** All-reduce: reduce-scatter in tree order, then all-gather. Undefined when no rank has a part. */
  total(lanes: number, parts: readonly RankPart<Tensor<'f32'>>[], gradient: DenseGradient): Tensor<'f32'> | undefined {
    if (parts.length === 0) return undefined;
    const { size } = this.#world;
    const mine = parts.filter(({ own }) => own !== undefined);
    const total = mine[0]?.own ?? gradient.spare();
    const start = (r: number) => Math.floor((total.size * r) / size);
    const pieces = Array.from({ length: size }, (_, r) => start(r + 1) - start(r));
    const { sum, owned } = this.reduce(lanes, parts, pieces);
    const send = sum ?? this.#nothing;
    this.#world.allGatherV(this.#device, { send, receive: total, counts: this.countsOf(pieces), unit: 1 });
    for (const { own } of mine.slice(1)) gradient.giveBack(own!);
    for (const tensor of owned) tensor.dispose();
    return total;
  }

  /** This rank's piece of the sum, undefined when empty; `owned` is disposed after use. Added up on `stream`. */
  reduce(
    lanes: number,
    parts: readonly RankPart<Tensor<'f32'>>[],
    pieces: readonly number[],
    stream?: StreamName,
  ): { sum: Tensor<'f32'> | undefined; owned: Tensor[] } {
    const piece = pieces[this.#world.rank]!;
    const received = this.#receivePieces(parts, pieces);
    const sum = new LaneSum<Tensor<'f32'>>(lanes, (left, right) => {
      if (piece > 0) add(this.#device, 1, { x: right, y: left }, stream);
      return left;
    });
    putNodes(
      sum,
      { from: 0, to: lanes },
      parts.map((part, k) => ({ from: part.from, to: part.to, value: received.views[k]! })),
    );
    return { sum: piece > 0 ? sum.total() : undefined, owned: received.owned };
  }

  /** In memory that no pending computation uses: otherwise the exchange would wait for the end of backward. */
  #forExchange(shape: readonly [rows: number, cols: number]): Tensor<'f32'> {
    const home = this.#device.home('comm');
    try {
      return this.#device.tensor(shape);
    } finally {
      this.#device.home(home);
    }
  }

  /** This rank's piece of every part. The k-th parts of all ranks share one exchange. */
  #receivePieces(
    parts: readonly RankPart<Tensor<'f32'>>[],
    pieces: readonly number[],
  ): { views: Tensor<'f32'>[]; owned: Tensor[] } {
    const { rank, size } = this.#world;
    const piece = pieces[rank]!;
    const views: Tensor<'f32'>[] = parts.map(() => this.#nothing);
    const owned: Tensor[] = [];
    const of = (r: number) => parts.flatMap((part, k) => (part.rank === r ? [k] : []));
    const byRank = Array.from({ length: size }, (_, r) => of(r));
    const rounds = Math.max(...byRank.map(own => own.length));
    for (let round = 0; round < rounds; round++) {
      const senders = byRank.flatMap((own, r) => (own.length > round ? [r] : []));
      const receive = this.#forExchange([1, Math.max(1, senders.length * piece)]);
      owned.push(receive);
      const mine = byRank[rank]![round];
      this.#world.allToAllV(this.#device, {
        send: mine === undefined ? this.#nothing : parts[mine]!.own!,
        sendCounts: this.countsOf(pieces.map(n => (mine === undefined ? 0 : n))),
        receive,
        receiveCounts: this.countsOf(byRank.map(own => (own.length > round ? piece : 0))),
        unit: 1,
      });
      if (piece === 0) continue;
      senders.forEach((r, place) => {
        const view = receive.columns(place * piece, piece);
        owned.unshift(view);
        views[byRank[r]![round]!] = view;
      });
    }
    return { views, owned };
  }

  /** Ready when all work enqueued on the compute stream is done. */
  async computed(): Promise<void> {
    await this.#device.read(this.#nothing);
  }

  /** Counts on the device. */
  countsOf(values: readonly number[]): Tensor<'i64'> {
    const key = values.join();
    const known = this.#counts.get(key);
    if (known) return known;
    const made = this.#device.from(BigInt64Array.from(values, BigInt));
    this.#counts.set(key, made);
    return made;
  }
}
