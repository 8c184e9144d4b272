// Worker threads that sort and write parts of the staged events, each with its own single-core engine and an equal share of
// the memory. DuckDB delivers a result to one thread; several concurrent results keep all cores busy.

import { on } from 'node:events';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { entryModule } from '../../util/entry-module.js';
import type { SealTask } from '../store/seal-shard.js';
import type { ShardEntry } from '../store/store-index.js';
import { ShardWork } from './shard-work.js';
import type { SortTask } from './sort-shards.js';

export type Task = SortTask | SealTask;

/** A worker's answer to a task. */
export interface Done {
  /** Of the task. */
  readonly events: number;
  readonly sealed?: ShardEntry;
}

export interface ShardWorkerOptions {
  readonly scratch: string;
  readonly memoryBytes: number;
  readonly reader: number;
  /** Occurrences of each number in the range of the items, of this worker only. */
  readonly tally: Int32Array;
}

export interface ShardWorkersOptions {
  readonly scratch: string;
  /** Total memory: DuckDB in all workers, their tallies, and the caller. */
  readonly memoryBytes: number;
  readonly threads: number | undefined;
  /** Length of a tally; 0 if nothing is counted. */
  readonly places: number;
  /** Total events. */
  readonly events: number;
}

/** The size of libuv's thread pool, in which DuckDB's calls block. */
const MOST_WORKERS = 4;
/** Minimum memory of a worker. */
const LEAST_BYTES = 100e6;
/** DuckDB's share of a worker's memory. The rest: the shard being filled, and chunks not yet garbage-collected. */
const DUCKDB_SHARE = 0.65;

/** Below this many events the caller does the work itself: starting threads would cost more. */
const WORTH_THREADS = 1 << 17;

export class ShardWorkers {
  readonly count: number;
  /** DuckDB's memory in one worker. */
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

  /** Runs all tasks, each in the next free worker, or (`dealt`) round-robin, so that no worker waits for the caller. */
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

/** Feeds a worker until no task is left, with up to `atOnce` tasks in flight. */
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
