// Exports vectors of items and users with their original ids: the dot product of a user's and an item's vector is the model's
// score. Parquet, CSV and JSON lines have (kind, id, vector); safetensors has `items` [V, D] and `users` [U, D] with the ids as
// UTF-8 `*_id_bytes`, delimited by `*_id_offsets`.

import { SafetensorsWriter, type TensorSpec } from '../util/safetensors.js';
import { PartFiles } from './part-files.js';
import type { Recommender } from './recommend.js';

const PART_ROWS = 4096;
const BATCH_USERS = 128;

export interface EmbedOptions {
  /** Ends in .safetensors, .parquet, .csv or .jsonl. */
  out: string;
  kinds: readonly ('items' | 'users')[];
  /** The time of the users' vectors, in the unit of the log; default: now. */
  at?: number | undefined;
}

type Kind = EmbedOptions['kinds'][number];

export async function embed(recommender: Recommender, options: EmbedOptions): Promise<Record<Kind, number>> {
  const sizes = {
    items: options.kinds.includes('items') ? recommender.items : 0,
    users: options.kinds.includes('users') ? recommender.users : 0,
  };
  if (options.out.endsWith('.safetensors')) await writeTensors(recommender, options, sizes);
  else await writeRows(recommender, options, sizes);
  return sizes;
}

const nameOf = (recommender: Recommender, kind: Kind, id: number): string =>
  kind === 'items' ? recommender.originalItem(id) : recommender.originalUser(id);

/** Vectors from `from` to `to` - 1. */
async function vectors(
  recommender: Recommender,
  { kind, from, to, at }: { kind: Kind; from: number; to: number; at: number | undefined },
): Promise<Float32Array[]> {
  const ids = Array.from({ length: to - from }, (_, i) => from + i);
  if (kind === 'items') return await recommender.embedSome(ids.map(id => recommender.originalItem(id)));
  const found: Float32Array[] = [];
  for (let i = 0; i < ids.length; i += BATCH_USERS) {
    const histories = ids.slice(i, i + BATCH_USERS).map(id => recommender.historyAt(id));
    found.push(...(await recommender.embedHistories(histories, { at })));
  }
  return found;
}

async function writeTensors(
  recommender: Recommender,
  { out, at }: EmbedOptions,
  sizes: Record<Kind, number>,
): Promise<void> {
  const kinds = (['items', 'users'] as const).filter(kind => sizes[kind] > 0);
  const ids = new Map(kinds.map(kind => [kind, idTensors(recommender, kind, sizes[kind])]));
  const specs: Record<string, TensorSpec> = {};
  for (const kind of kinds) {
    specs[kind] = { dtype: 'F32', shape: [sizes[kind], recommender.dimension] };
    specs[`${kind}_id_bytes`] = { dtype: 'U8', shape: [ids.get(kind)!.bytes.length] };
    specs[`${kind}_id_offsets`] = { dtype: 'I64', shape: [sizes[kind] + 1] };
  }
  const writer = new SafetensorsWriter(out, specs, { format: 'turbogr-vectors' });
  try {
    for (const kind of kinds) {
      writer.append(`${kind}_id_bytes`, ids.get(kind)!.bytes);
      writer.append(`${kind}_id_offsets`, ids.get(kind)!.offsets);
      for (let from = 0; from < sizes[kind]; from += PART_ROWS) {
        const to = Math.min(sizes[kind], from + PART_ROWS);
        for (const vector of await vectors(recommender, { kind, from, to, at })) writer.append(kind, vector);
      }
    }
  } catch (error) {
    writer.abandon();
    throw error;
  }
  writer.close();
}

function idTensors(recommender: Recommender, kind: Kind, size: number): { bytes: Buffer; offsets: BigInt64Array } {
  const names = Array.from({ length: size }, (_, id) => Buffer.from(nameOf(recommender, kind, id)));
  const offsets = new BigInt64Array(size + 1);
  names.forEach((name, i) => {
    offsets[i + 1] = offsets[i]! + BigInt(name.length);
  });
  return { bytes: Buffer.concat(names), offsets };
}

async function writeRows(
  recommender: Recommender,
  { out, at }: EmbedOptions,
  sizes: Record<Kind, number>,
): Promise<void> {
  const columns = { kind: 'VARCHAR', id: 'VARCHAR', vector: 'FLOAT[]' };
  const files = new PartFiles({ out, identity: { digest: await recommender.run.model.digest(), sizes, at }, columns });
  let part = 0;
  for (const kind of ['items', 'users'] as const) {
    for (let from = 0; from < sizes[kind]; from += PART_ROWS, part++) {
      if (files.has(part)) continue;
      const to = Math.min(sizes[kind], from + PART_ROWS);
      const found = await vectors(recommender, { kind, from, to, at });
      files.write(
        part,
        found.map((vector, i) => ({
          kind: kind.slice(0, -1),
          id: nameOf(recommender, kind, from + i),
          vector: Array.from(vector),
        })),
      );
    }
  }
  await files.finish(part);
}
