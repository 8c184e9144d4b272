// The tasks of a worker, in any thread: sorting and writing parts of the staged events, sealing shards.

import { sealShard } from '../store/seal-shard.js';
import { Engine } from './engine.js';
import type { Done, ShardWorkerOptions, Task } from './shard-workers.js';
import { sortShards } from './sort-shards.js';

export class ShardWork {
  private readonly options: ShardWorkerOptions;
  private engine: Engine | undefined;

  constructor(options: ShardWorkerOptions) {
    this.options = options;
  }

  async perform(task: Task): Promise<Done> {
    if (task.kind === 'seal') return { events: task.shard.events, sealed: sealShard(task) };
    const { scratch, memoryBytes, reader, tally } = this.options;
    this.engine ??= await Engine.open({ scratch, memoryBytes, threads: 1, reader });
    await sortShards(this.engine, task, tally);
    return { events: task.shards.reduce((n, { events }) => n + events, 0) };
  }

  close(): void {
    this.engine?.close();
  }
}
