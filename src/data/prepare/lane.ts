// The thread behind a lane: does one task after another, and answers each.

import { parentPort, workerData } from 'node:worker_threads';
import { sealShard } from '../store/seal-shard.js';
import { Engine } from './engine.js';
import type { Done, LaneOptions, Task } from './lanes.js';
import { sortShards } from './sort-shards.js';

const { scratch, memoryBytes, reader, tally }: LaneOptions = workerData;

async function perform(task: Task): Promise<Done> {
  if (task.kind === 'seal') return { events: task.shard.events, sealed: sealShard(task) };
  const engine = await Engine.open({ scratch, memoryBytes, threads: 1, reader });
  try {
    await sortShards(engine, task, tally);
  } finally {
    engine.close();
  }
  return { events: task.shards.reduce((n, { events }) => n + events, 0) };
}

parentPort?.on('message', async (task: Task) => parentPort?.postMessage(await perform(task)));
