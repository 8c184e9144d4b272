// The tensors of one checkpoint file together with its shards: `weights.safetensors`, and the rows of sharded tables in
// `weights-0-of-2.safetensors` and `weights-1-of-2.safetensors`.

import { join } from 'node:path';
import type { RowShard } from '../util/row-shard.js';
import { SafetensorsFile, type TensorSpec } from '../util/safetensors.js';
import { type ReadElements, reshardRows, type TensorFile } from '../util/tensor-file.js';

/** File name of a shard, without extension. */
export function shardName(file: string, { index, count }: RowShard): string {
  return count === 1 ? file : `${file}-${index}-of-${count}`;
}

export class CheckpointTensors implements TensorFile {
  readonly path: string;
  readonly tensors: ReadonlyMap<string, TensorSpec>;
  readonly #whole: SafetensorsFile;
  readonly #shards: readonly SafetensorsFile[];

  /** `names` are all files of the checkpoint. */
  constructor(folder: string, file: string, names: readonly string[]) {
    this.path = join(folder, `${file}.safetensors`);
    this.#whole = new SafetensorsFile(this.path);
    const shards = names.flatMap(name => {
      const index = name.startsWith(`${file}-`) ? /-(\d+)-of-\d+\.safetensors$/.exec(name)?.[1] : undefined;
      return index === undefined ? [] : [{ name, index: Number(index) }];
    });
    this.#shards = shards.sort((a, b) => a.index - b.index).map(({ name }) => new SafetensorsFile(join(folder, name)));
    const divided = [...(this.#shards[0]?.tensors ?? [])].map(([name, { dtype, shape }]): [string, TensorSpec] => {
      const rows = this.#shards.reduce((sum, { tensors }) => sum + (tensors.get(name)?.shape[0] ?? 0), 0);
      return [name, { dtype, shape: [rows, ...shape.slice(1)] }];
    });
    this.tensors = new Map([...this.#whole.tensors, ...divided]);
  }

  /** Each file separately, for tensors that are not sharded by row. */
  get parts(): readonly SafetensorsFile[] {
    return [this.#whole, ...this.#shards];
  }

  readRows(name: string, want: RowShard, start: number, into: Float32Array<ArrayBuffer>): void {
    if (this.#whole.tensors.has(name) || this.#shards.length === 0) {
      this.#whole.readRows(name, want, start, into);
    } else if (this.#shards.length === want.count) {
      this.#shards[want.index]!.readInto(name, 'F32', start, into);
    } else {
      const [, cols = 1] = this.tensors.get(name)!.shape;
      const sources = this.#shards.map(
        (file): ReadElements =>
          (from, to) =>
            file.readInto(name, 'F32', from, to),
      );
      reshardRows(sources, cols, want, { start, into });
    }
  }

  close(): void {
    for (const file of this.parts) file.close();
  }
}
