// Entry point of a worker thread: processes tasks in order and answers each.

import { parentPort, workerData } from 'node:worker_threads';
import { ShardWork } from './shard-work.js';
import type { ShardWorkerOptions, Task } from './shard-workers.js';

const options: ShardWorkerOptions = workerData;
const work = new ShardWork(options);

async function answer(task: Task, before: Promise<void>): Promise<void> {
  await before;
  const done = await work.perform(task);
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
  parentPort?.postMessage(done);
}

let last = Promise.resolve();

parentPort?.on('message', (task: Task) => {
  last = answer(task, last);
});
