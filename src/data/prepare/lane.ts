// The thread behind a lane: does one task after another, and answers each.

import { parentPort, workerData } from 'node:worker_threads';
import { LaneWork } from './lane-work.js';
import type { LaneOptions, Task } from './lanes.js';

const options: LaneOptions = workerData;
const work = new LaneWork(options);

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
