// Worker threads that sort and write parts of the staged events, each with an engine of its own on one core and an
// equal part of the memory. DuckDB hands a result to one thread; several results at once keep all cores at work to the end.

import { on } from 'node:events';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { entryModule } from '../../util/entry-module.js';
import type { SealTask } from '../store/seal-shard.js';
import type { ShardEntry } from '../store/store-index.js';
import { ShardWork } from './shard-work.js';
import type { SortTask } from './sort-shards.js';

export type Task = SortTask | SealTask;

/** What a worker answers when it has done a task. */
export interface Done {
  /** Of the task. */
  readonly events: number;
  readonly sealed?: ShardEntry;
}

export interface ShardWorkerOptions {
  readonly scratch: string;
  readonly memoryBytes: number;
  readonly reader: number;
  /** How often each place in the range of the items came by; this worker's alone. */
  readonly tally: Int32Array;
}

export interface ShardWorkersOptions {
  readonly scratch: string;
  /** For everything: DuckDB in all workers, their tallies, and as much again for the caller. */
  readonly memoryBytes: number;
  readonly threads: number | undefined;
  /** Length of a tally; 0 when there is nothing to count. */
  readonly places: number;
  /** Events in all. */
  readonly events: number;
}

/** As many as the threads of libuv's pool, in which DuckDB's calls wait. */
const MOST_WORKERS = 4;
/** With less memory than this a worker is not worth while. */
const LEAST_BYTES = 100e6;
/** DuckDB's part of a worker's memory. The rest: the shard that is filled, chunks that wait for the garbage collector. */
const DUCKDB_SHARE = 0.65;

/** Below this many events the caller does the work itself: starting threads would take longer. */
const WORTH_THREADS = 1 << 17;

export class ShardWorkers {
  readonly count: number;
  /** For DuckDB in one worker. */
  readonly bytesEach: number;
  readonly tallies: Int32Array[] = [];
  private readonly options: ShardWorkersOptions;
  private readonly workers: Worker[] = [];
  private own: ShardWork | undefined;

  constructor(options: ShardWorkersOptions) {
    const { memoryBytes, threads = availableParallelism(), places, events } = options;
    const tallyBytes = places * Int32Array.BYTES_PER_ELEMENT;
    const fitting = Math.floor((memoryBytes - tallyBytes) / (tallyBytes + LEAST_BYTES));
    this.options = options;
    this.count = events < WORTH_THREADS ? 1 : Math.max(1, Math.min(threads, MOST_WORKERS, fitting));
    const left = Math.max(memoryBytes / 2, memoryBytes - (this.count + 1) * tallyBytes);
    this.bytesEach = (DUCKDB_SHARE * left) / this.count;
  }

  /** Do all tasks, each in the next worker that is free, or (`dealt`) in turn, so that no worker waits for the caller. */
  async run(tasks: readonly Task[], onDone: (done: Done) => void = () => {}, { dealt = false } = {}): Promise<void> {
    if (this.options.events < WORTH_THREADS) {
      this.own ??= new ShardWork(this.nextWorker());
      for (const task of tasks) onDone(await this.own.perform(task));
      return;
    }
    while (this.workers.length < Math.min(this.count, tasks.length)) this.workers.push(this.start());
    const shared = [...tasks];
    const hands = this.workers.map((_, w) => (dealt ? tasks.filter((__, t) => t % this.workers.length === w) : shared));
    await Promise.all(this.workers.map((worker, w) => work(worker, hands[w] ?? [], dealt ? tasks.length : 1, onDone)));
  }

  async close(): Promise<void> {
    this.own?.close();
    await Promise.all(this.workers.map(worker => worker.terminate()));
  }

  private start(): Worker {
    const { path, execArgv } = entryModule('shard-worker', import.meta.url);
    return new Worker(path, { workerData: this.nextWorker(), execArgv });
  }

  private nextWorker(): ShardWorkerOptions {
    const { scratch, places } = this.options;
    const tally = new Int32Array(new SharedArrayBuffer(places * Int32Array.BYTES_PER_ELEMENT));
    const reader = this.tallies.push(tally);
    return { scratch, memoryBytes: this.bytesEach, reader, tally };
  }
}

/** Feed a worker until no task is left, `atOnce` ahead of its answers. */
async function work(worker: Worker, left: Task[], atOnce: number, onDone: (done: Done) => void): Promise<void> {
  const answers = on(worker, 'message');
  const give = (tasks: readonly Task[]): number => {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
    for (const task of tasks) worker.postMessage(task);
    return tasks.length;
  };
  let given = give(left.splice(0, atOnce));
  for (let done = 0; done < given; done++) {
    const { value }: { value: Done[] } = await answers.next();
    if (value[0]) onDone(value[0]);
    given += give(left.splice(0, 1));
  }
  await answers.return?.();
}
