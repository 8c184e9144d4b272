// Values of rows before updates changed them, saved in checkpoints so that a resumed run reads the same stale rows as the
// uninterrupted one. Indexed by row of the whole table: `<step>.ids` [U], `<step>.rows` [U, D].

import type { Device } from '../native/device.js';
import type { RowShard } from '../util/row-shard.js';
import type { SafetensorsFile } from '../util/safetensors.js';
import type { StoredTensor } from './checkpoint.js';
import type { OldRows } from './stale-rows.js';

/** This rank's part, for a file. */
export async function storedOldRows(device: Device, old: readonly OldRows[], shard: RowShard): Promise<StoredTensor[]> {
  const tensors: StoredTensor[] = [];
  for (const { step, list } of old) {
    const local = (await device.read(list.ids)).filter(id => id >= 0);
    const { cols } = list.rows;
    const ids = local.map(id => id * shard.count + shard.index);
    const { length } = ids;
    const readIds = async function* () {
      yield ids;
    };
    const readRows = async function* () {
      yield (await device.read(list.rows)).subarray(0, length * cols);
    };
    tensors.push(
      {
        name: `${step}.ids`,
        dtype: 'I32',
        shape: [ids.length],
        shard,
        shardShape: [ids.length],
        read: readIds,
      },
      {
        name: `${step}.rows`,
        dtype: 'F32',
        shape: [ids.length, cols],
        shard,
        shardShape: [ids.length, cols],
        read: readRows,
      },
    );
  }
  return tensors;
}

/** The rows of a shard, from the files of all ranks that wrote. */
export function readOldRows(device: Device, files: readonly SafetensorsFile[], shard: RowShard): OldRows[] {
  const steps = new Set(files.flatMap(({ tensors }) => [...tensors.keys()].map(name => Number.parseInt(name, 10))));
  return [...steps]
    .sort((a, b) => a - b)
    .map(step => {
      const found = files.flatMap(file => rowsOf(file, step, shard)).sort((a, b) => a.id - b.id);
      const cols = files.find(({ tensors }) => tensors.has(`${step}.rows`))!.tensors.get(`${step}.rows`)!.shape[1]!;
      const count = Math.max(1, found.length);
      const rows = new Float32Array(count * cols);
      found.forEach(({ row }, i) => rows.set(row, i * cols));
      const ids = found.length > 0 ? Int32Array.from(found, ({ id }) => id) : Int32Array.of(-1);
      return { step, list: { ids: device.from(ids), rows: device.from(rows, [count, cols]) } };
    });
}

function rowsOf(file: SafetensorsFile, step: number, { index, count }: RowShard): { id: number; row: Float32Array }[] {
  if (!file.tensors.has(`${step}.ids`)) return [];
  const ids = file.read(`${step}.ids`, 'I32');
  const rows = file.read(`${step}.rows`, 'F32');
  const cols = ids.length === 0 ? 0 : rows.length / ids.length;
  return [...ids.keys()]
    .filter(at => ids[at]! % count === index)
    .map(at => ({ id: Math.floor(ids[at]! / count), row: rows.subarray(at * cols, (at + 1) * cols) }));
}
