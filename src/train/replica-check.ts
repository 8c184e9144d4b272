// Checks that replicas are still equal: dense parameters and whole tables on all ranks, rows of sharded tables across
// groups. Deterministic arithmetic keeps them equal; faulty memory, links or builds do not. At a fixed interval of steps ranks
// compare digests of one block of each: small tensors whole, large tables one block after the other.

import { createHash } from 'node:crypto';
import type { RankGroups } from '../dist/shard/rank-groups.js';
import type { Device } from '../native/device.js';
import type { Model, NamedWeight } from '../nn/model.js';
import { copyRows } from '../ops/copy-rows.js';
import { UserError } from '../util/errors.js';

/** Floats of a block: 1 MB. */
const BLOCK_FLOATS = 1 << 18;

export interface ReplicaCheckOptions {
  device: Device;
  model: Model;
  groups: RankGroups;
  /** Steps between two comparisons. */
  every: number;
}

/** By weight; null where no other rank has the same rows. */
export type ReplicaDigests = readonly (string | null)[];

/** The rows to compare now. */
export function blockOf({ rows, cols }: { rows: number; cols: number }, turn: number): { from: number; count: number } {
  const most = Math.max(1, Math.floor(BLOCK_FLOATS / cols));
  const from = (turn % Math.ceil(rows / most)) * most;
  return { from, count: Math.min(most, rows - from) };
}

export class ReplicaCheck {
  readonly #options: ReplicaCheckOptions;

  constructor(options: ReplicaCheckOptions) {
    this.#options = options;
  }

  /** Digests of this rank's blocks after a step; undefined when no comparison is due. */
  digests(step: number): Promise<ReplicaDigests> | undefined {
    const { model, every } = this.#options;
    if (step % every !== 0) return undefined;
    return Promise.all(model.all.map(weight => this.#digest(weight, step / every)));
  }

  /** Compares the digests of all ranks; throws when they differ. */
  compare(step: number, all: readonly ReplicaDigests[]): void {
    const { model, groups, every } = this.#options;
    const { size } = groups.group;
    model.all.forEach(({ name, value, shard }, i) => {
      for (let owner = 0; owner < shard.count; owner++) {
        const ranks = all.flatMap((_, rank) => (rank % shard.count === owner ? [rank] : []));
        const found = outlier(ranks.map(rank => all[rank]![i] ?? ''));
        if (!found) continue;
        const [wrong, right] = [ranks[found.wrong]!, ranks[found.right]!];
        const { from, count } = blockOf(value, step / every);
        const groupOf = (rank: number): string => `rank ${rank} (group ${Math.floor(rank / size)})`;
        const what = model.tables.some(table => table.name === name) ? 'table' : 'parameter';
        throw new UserError(
          'replicas-differ',
          `after step ${step} ${what} "${name}" of ${groupOf(wrong)} differs from that of ${groupOf(right)}, within its rows ${from} to ${from + count - 1}`,
          'Check memory and network of that host, and that all ranks run the same build; a run resumes from its last checkpoint.',
        );
      }
    });
  }

  async #digest({ value, shard }: NamedWeight, turn: number): Promise<string | null> {
    const { device, groups } = this.#options;
    if (shard.count > 1 && groups.peers.size === 1) return null;
    const { from, count } = blockOf(value, turn);
    using block = device.tensor([count, value.cols]);
    copyRows(device, { rows: value, from, to: block, at: 0, count });
    const data = await device.read(block);
    return createHash('sha256').update(data).digest('hex');
  }
}

/** A rank that differs from the majority, and one of the majority; in a tie, the first value is taken to be right. */
function outlier(values: readonly string[]): { wrong: number; right: number } | undefined {
  const votes = (value: string): number => values.filter(other => other === value).length;
  const most = Math.max(...values.map(votes));
  const right = values.findIndex(value => votes(value) === most);
  const wrong = values.findIndex(value => value !== values[right]);
  return wrong < 0 ? undefined : { wrong, right };
}
