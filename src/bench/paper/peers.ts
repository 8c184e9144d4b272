// The same step in PyTorch, when a Python with torch is named (`--peer python3`): padded as the public reference computes
// it, and as a loop over the sequences. Same batch, same threads; scripts/peer_hstu.py is ours.

import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { Device } from '../../native/device.js';
import type { JaggedBatch } from '../../tensor/jagged.js';
import { median } from '../measuring.js';
import { drawBatch, drawLengths } from '../random-batch.js';
import { openLearner, type StepCase } from '../step.js';
import type { PaperRow, Section, SectionOptions } from './row.js';

const SCRIPT = fileURLToPath(new URL('../../../scripts/peer_hstu.py', import.meta.url));
const MODEL: StepCase = { kind: 'hstu', d: 256, blocks: 4, heads: 4, tokens: 4096, items: 10_000, table: 'adamw' };
const [DROPOUT, NEGATIVES] = [0.2, 128];
const NAMES = ['padded HSTU, as the public reference computes it', 'loop over the sequences'];

const ANSWER = z.object({ torch: z.string(), padded_ms: z.number(), loop_ms: z.number() });

export const peers: Section = {
  id: 'peers',
  title: 'The same step in PyTorch',
  about:
    'HSTU of width 256, 4 blocks, 4 heads, 4,096 tokens in sequences of mean 200, 10,000 items, 128 negatives, AdamW on every row; forward, backward and update on the same threads. Both peers were written for this comparison (scripts/peer_hstu.py).',
  parts: [{ id: 'padded and by sequence', measure }],
};

async function measure(options: SectionOptions): Promise<PaperRow[]> {
  if (options.peer === undefined) return notMeasured('no Python was named: --peer python3 (with torch)');
  const lengths = drawLengths(MODEL.tokens);
  const batch = drawBatch(lengths, MODEL.items);
  const request = {
    ...MODEL,
    dropout: DROPOUT,
    negatives: NEGATIVES,
    longest: Math.max(...lengths),
    threads: options.threads ?? availableParallelism(),
    steps: options.quick ? 2 : 5,
    offsets: [...batch.offsets],
    item: [...batch.item],
    target: [...batch.target],
    time: [...batch.time],
    next_time: [...batch.nextTime],
  };
  const found = await ask(options.peer, request);
  if (typeof found === 'string') return notMeasured(found);
  const millis = await ourStep(batch, Math.max(...lengths), options);
  const { torch, padded_ms: padded, loop_ms: loop } = found;
  return [padded, loop].map((peer, p) => ({
    name: `${NAMES[p]} (torch ${torch}) -> ours`,
    ours: `${peer.toFixed(0)} -> ${millis.toFixed(0)} ms (${(peer / millis).toFixed(1)}x)`,
    figures: { peer_ms: peer, ours_ms: millis },
  }));
}

function notMeasured(missing: string): PaperRow[] {
  return NAMES.map(name => ({ name: `${name} -> ours`, missing }));
}

async function ourStep(batch: JaggedBatch, longest: number, { threads, quick }: SectionOptions): Promise<number> {
  using device = Device.open(threads === undefined ? {} : { threads });
  const { learner } = openLearner(device, MODEL, longest);
  const times: number[] = [];
  const steps = quick ? 3 : 10;
  for (let step = 1; step <= 1 + steps; step++) {
    const start = performance.now();
    await (await learner.step([batch], { step, totalSteps: 100 })).loss;
    await device.sync();
    if (step > 1) times.push(performance.now() - start);
  }
  return median(times);
}

/** The peer's measurement, or why there is none. */
async function ask(python: string, request: object): Promise<z.infer<typeof ANSWER> | string> {
  const ended = await new Promise<string | { code: number | null; out: string; error: string }>(resolve => {
    const peer = spawn(python, [SCRIPT], { stdio: 'pipe' });
    let [out, error] = ['', ''];
    peer.stdout.on('data', (piece: Buffer) => (out += piece.toString()));
    peer.stderr.on('data', (piece: Buffer) => (error += piece.toString()));
    peer.stdin.on('error', () => undefined); // it ended before it had read everything; its exit status says why
    peer.on('error', cause => resolve(`${python} cannot be started: ${cause.message}`));
    peer.on('close', code => resolve({ code, out, error }));
    peer.stdin.end(JSON.stringify(request));
  });
  if (typeof ended === 'string') return ended;
  if (ended.code !== 0) {
    return ended.error.includes("No module named 'torch'")
      ? `${python} has no torch`
      : `${python} failed: ${ended.error.trimEnd().split('\n').at(-1)}`;
  }
  return ANSWER.parse(JSON.parse(ended.out));
}
