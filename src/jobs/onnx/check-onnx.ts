// Checks exported graphs against the run on real histories and reports the largest difference. onnxruntime is an optional
// dependency.

import { join } from 'node:path';
import { readFileSync } from 'node:fs';
import { ItemRanker, type History } from '../../eval/item-ranker.js';
import { UserError } from '../../util/errors.js';
import { openRecommender } from '../recommend.js';
import type { OpenRunOptions } from '../open-run.js';

export interface OnnxDifference {
  histories: number;
  /** Largest absolute difference of an encoder's output, and of a score. */
  state: number;
  score: number;
}

/** The part of onnxruntime's interface in use, shared by onnxruntime-web and onnxruntime-node. */
interface Runtime {
  InferenceSession: { create(model: Uint8Array): Promise<Session> };
  Tensor: new (type: string, data: BigInt64Array | Float32Array, shape: readonly number[]) => unknown;
}
interface Session {
  run(inputs: Readonly<Record<string, unknown>>): Promise<Readonly<Record<string, { data: unknown }>>>;
}

const RUNTIMES = ['onnxruntime-node', 'onnxruntime-web'];

/** `histories`: number of users, spread over the log. */
export async function checkOnnx(
  run: string,
  folder: string,
  { histories = 20, ...opening }: OpenRunOptions & { histories?: number } = {},
): Promise<OnnxDifference> {
  const runtime = await findRuntime();
  const open = (name: string): Promise<Session> => runtime.InferenceSession.create(readFileSync(join(folder, name)));
  const [encoder, scorer] = [await open('encoder.onnx'), await open('scorer.onnx')];
  using recommender = openRecommender(run, opening);
  const { model } = recommender.run;
  const ranker = new ItemRanker(model, { named: recommender.items });
  const difference = { histories: 0, state: 0, score: 0 };
  const { d, maxLength } = model.definition;
  const step = Math.max(1, Math.floor(recommender.users / histories));
  for (let user = 0; user < recommender.users && difference.histories < histories; user += step) {
    const { history } = recommender.plan({ history: recommender.historyAt(user) });
    if (!history) continue;
    const state = await states(encoder, encoderFeed(runtime, history, maxLength));
    const wanted = await ranker.states([history]);
    difference.state = Math.max(difference.state, largest(state, wanted));
    const { scores } = await scorer.run({ state: new runtime.Tensor('float32', state, [1, d]) });
    const [ranked] = await ranker.rank([{ history, k: recommender.items, excluded: new Int32Array(0) }]);
    const found = floats(scores);
    for (const { item, score } of ranked!) {
      difference.score = Math.max(difference.score, Math.abs(found[item]! - score));
    }
    difference.histories++;
  }
  return difference;
}

async function findRuntime(): Promise<Runtime> {
  for (const name of RUNTIMES) {
    try {
      const found: { default?: Runtime } & Runtime = await import(name);
      return found.default ?? found;
    } catch {
      // Not installed: try the next.
    }
  }
  throw new UserError('no-onnxruntime', 'no onnxruntime is installed here', 'Install one: npm install onnxruntime-web');
}

/** All possible inputs of an encoder; only those that it has are passed. */
function encoderFeed({ Tensor }: Runtime, history: History, maxLength: number): Record<string, unknown> {
  const from = Math.max(0, history.items.length - maxLength);
  const tensor = (values: ArrayLike<number>): unknown => {
    const data = BigInt64Array.from(Array.from(values, BigInt));
    return new Tensor('int64', data, [data.length]);
  };
  const times = history.times.subarray(from);
  return {
    item: tensor(history.items.subarray(from)),
    time: tensor(times),
    next_time: tensor([...times.subarray(1), history.at]),
    action: tensor(history.actions.subarray(from)),
  };
}

async function states(encoder: Session, feed: Record<string, unknown>): Promise<Float32Array> {
  const names = 'inputNames' in encoder && Array.isArray(encoder.inputNames) ? encoder.inputNames.map(String) : [];
  const { state } = await encoder.run(Object.fromEntries(names.map(name => [name, feed[name]])));
  return floats(state);
}

function floats(tensor: { data: unknown } | undefined): Float32Array {
  if (tensor?.data instanceof Float32Array) return tensor.data;
  throw new Error('the ONNX graph gave no floats');
}

function largest(a: Float32Array, b: Float32Array): number {
  return a.reduce((most, x, i) => Math.max(most, Math.abs(x - b[i]!)), 0);
}
