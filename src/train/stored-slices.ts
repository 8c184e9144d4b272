// Optimiser state of dense parameters in checkpoints. A single rank writes it with the rest of the optimiser; with several
// ranks each writes its slices, `<parameter>.m@<start>`, to its own file. A reader takes what it needs from all files, so
// the number of ranks may change.

import type { Communicator } from '../dist/comm/communicator.js';
import type { Device } from '../native/device.js';
import { readRows, writeRows } from '../ops/copy-rows.js';
import type { Moment } from '../optim/optimizer.js';
import type { SafetensorsFile } from '../util/safetensors.js';
import type { StoredTensor } from './checkpoint.js';

/** This rank's slices, for a file. */
export function storedMoments(device: Device, world: Communicator, moments: readonly Moment[]): StoredTensor[] {
  const [dtype, shard] = ['F32' as const, { index: world.rank, count: world.size }];
  return moments.map(({ name, start, value, shape }) => {
    const read = () => readRows(device, value);
    if (world.size === 1) return { name, dtype, shape, read };
    return { name: `${name}@${start}`, dtype, shape, shard, shardShape: value.shape, read };
  });
}

/** Overwrites this rank's moments with those of the files. */
export function restoreMoments(device: Device, files: readonly SafetensorsFile[], moments: readonly Moment[]): void {
  for (const { name, start, value } of moments) {
    const pieces = files.flatMap(file => piecesOf(file, name));
    writeRows(device, value, (from, into) => readPieces(pieces, start + from, into));
  }
}

interface Piece {
  readonly file: SafetensorsFile;
  readonly name: string;
  /** Offset in the whole tensor. */
  readonly start: number;
  readonly size: number;
}

function piecesOf(file: SafetensorsFile, wanted: string): Piece[] {
  return [...file.tensors].flatMap(([name, { shape }]) => {
    const [whole, start = '0'] = name.split('@');
    if (whole !== wanted) return [];
    return [{ file, name, start: Number(start), size: shape.reduce((n, d) => n * d, 1) }];
  });
}

function readPieces(pieces: readonly Piece[], start: number, into: Float32Array<ArrayBuffer>): void {
  let found = 0;
  for (const piece of pieces) {
    const [from, to] = [Math.max(start, piece.start), Math.min(start + into.length, piece.start + piece.size)];
    if (from >= to) continue;
    piece.file.readInto(piece.name, 'F32', from - piece.start, into.subarray(from - start, to - start));
    found += to - from;
  }
  if (found !== into.length) throw new Error(`a checkpoint has ${found} of ${into.length} elements of optimiser state`);
}
