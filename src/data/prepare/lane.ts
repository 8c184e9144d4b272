// The thread behind a lane: does one task after another, and answers each.

import { parentPort, workerData } from 'node:worker_threads';
import { sealShard } from '../store/seal-shard.js';
import { Engine } from './engine.js';
import type { Done, LaneOptions, Task } from './lanes.js';
import { sortShards } from './sort-shards.js';

const { scratch, memoryBytes, reader, tally }: LaneOptions = workerData;

let engine: Engine | undefined;

async function perform(task: Task): Promise<Done> {
  if (task.kind === 'seal') return { events: task.shard.events, sealed: sealShard(task) };
  engine ??= await Engine.open({ scratch, memoryBytes, threads: 1, reader });
  await sortShards(engine, task, tally);
  return { events: task.shards.reduce((n, { events }) => n + events, 0) };
}

async function answer(task: Task, before: Promise<void>): Promise<void> {
  await before;
  const done = await perform(task);
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
  parentPort?.postMessage(done);
}

let last = Promise.resolve();

parentPort?.on('message', (task: Task) => {
  last = answer(task, last);
});
