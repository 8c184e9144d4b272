// A run as ONNX, for runtimes of other languages:
//
//   encoder.onnx   item [n], time [n], next_time [n], action [n] of one history, oldest first, at most `max_length` events
//                  -> state [1, D]; time inputs only if the model uses times, action only if it embeds them
//   scorer.onnx    state [b, D] -> scores [b, V], by which items are ranked
//   items.json     original ids in the order of the scores
//
// next_time[i] is the time of event i + 1; for the last event, the time to recommend for.

import { existsSync, mkdirSync, readdirSync, renameSync, rmdirSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { ResolvedConfig } from '../../config/schema.js';
import type { Model } from '../../nn/model.js';
import { makeFolder, syncFolder, claimTemporary, writeFileAtomic } from '../../util/atomic-file.js';
import { readAllRows } from '../../ops/copy-rows.js';
import { UserError } from '../../util/errors.js';
import { OpenRun, type OpenRunOptions } from '../open-run.js';
import { encoderBlocks } from './blocks.js';
import { Graph, type Value } from './graph.js';
import { makePairs, unitRows } from './layers.js';
import type { Message } from './message.js';

/** Size limit of protocol buffers. */
const MOST_BYTES = 2 ** 31 - 1;

export interface OnnxReport {
  folder: string;
  /** Inputs of the encoder. */
  inputs: string[];
  /** Whether the run uses priors of the log, which the scorer lacks. */
  withoutPriors: boolean;
}

/** Writes the folder atomically. Refuses an existing one. */
export async function exportOnnx(run: string, out: string, options: OpenRunOptions = {}): Promise<OnnxReport> {
  const folder = resolve(out);
  if (existsSync(folder) && readdirSync(folder).length > 0) {
    throw new UserError('out-exists', `${out} exists and is not empty`, 'Choose another folder for --onnx.');
  }
  using opened = new OpenRun(run, { ...options, coldItems: 'from-labels' });
  const { model, config, source, priors } = opened;
  encoderBlocks(opened.kind); // refused before the work starts
  const weights = new Map<string, Float32Array>();
  for (const { name, value } of model.all) weights.set(name, await readAllRows(model.device, value));
  const inputs = encoderInputs(model, config, source.ticksPerDay);
  const metadata = {
    digest: await model.digest(),
    fingerprint: source.fingerprint,
    max_length: String(model.definition.maxLength),
    time_unit: source.index.time.kind,
    inputs: inputs.join(','),
  };
  const named = source.itemVocabulary.size;
  const files: Record<string, Message> = {
    'encoder.onnx': encoder({ model, config, weights, inputs, ticksPerDay: source.ticksPerDay }).model(metadata),
    'scorer.onnx': scorer({ model, weights, named }).model(metadata),
  };
  makeFolder(dirname(folder));
  const temp = claimTemporary(folder);
  rmSync(temp, { recursive: true, force: true });
  mkdirSync(temp);
  try {
    for (const [name, file] of Object.entries(files)) {
      if (file.length > MOST_BYTES) throw tooLarge(name, file.length);
      file.write(join(temp, name));
    }
    const ids = Array.from({ length: named }, (_, item) => source.originalItem(item));
    writeFileAtomic(join(temp, 'items.json'), `${JSON.stringify(ids)}\n`);
    if (existsSync(folder)) rmdirSync(folder); // empty, or refused
    renameSync(temp, folder);
  } catch (error) {
    rmSync(temp, { recursive: true, force: true });
    throw error;
  }
  syncFolder(dirname(folder));
  return { folder: out, inputs, withoutPriors: priors !== undefined };
}

function tooLarge(name: string, bytes: number): UserError {
  const message = `${name} would have ${(bytes / 1e9).toFixed(1)} GB, and an ONNX file has 2 GB at most`;
  return new UserError(
    'too-large',
    message,
    'Export the vectors with `npx turbogr embed`, or the model with --bundle.',
  );
}

function encoderInputs(model: Model, config: ResolvedConfig, ticksPerDay: number | undefined): string[] {
  const timed = config.model.kind !== 'sasrec' && config.model.timeBias !== 'off' && ticksPerDay !== undefined;
  return ['item', ...(timed ? ['time', 'next_time'] : []), ...(model.shape.actions > 0 ? ['action'] : [])];
}

interface EncoderInput {
  model: Model;
  config: ResolvedConfig;
  weights: ReadonlyMap<string, Float32Array>;
  inputs: readonly string[];
  ticksPerDay: number | undefined;
}

function encoder({ model, config, weights, inputs, ticksPerDay }: EncoderInput): Graph {
  const g = new Graph('encoder');
  const given = new Map(inputs.map(name => [name, g.input(name, 'int64', ['n'])]));
  const item = given.get('item')!;
  const [time, nextTime] = [given.get('time'), given.get('next_time')];
  const { positions, ...pairs } = makePairs(g, item, time && nextTime ? { time, nextTime } : undefined);
  const shapes = new Map(model.all.map(({ name, value }) => [name, value.shape]));
  const added = new Map<string, Value>();
  const weight = (name: string): Value => {
    const value = added.get(name) ?? g.weights(name, weights.get(name)!, shapes.get(name)!);
    added.set(name, value);
    return value;
  };
  const rows = g.op('Mul', [g.op('Gather', [weight('items'), item]), g.float(Math.sqrt(model.definition.d))]);
  let x = g.op('Add', [rows, g.op('Gather', [weight('positions'), positions])]);
  const sides: { table: string; ids: Value; rows: number }[] = model.shape.sideFeatures.map(
    ({ name, rows: count, ofItem }) => ({
      table: `features.${name}`,
      ids: g.op('Gather', [g.ints(ofItem), item]),
      rows: count,
    }),
  );
  const action = given.get('action');
  if (action !== undefined) sides.unshift({ table: 'actions', ids: action, rows: model.shape.actions });
  for (const side of sides) x = g.op('Add', [x, rowsOrNothing(g, weight(side.table), side)]);
  const values = (name: string): Float32Array => weights.get(name)!;
  const states = encoderBlocks(config.model.kind)(x, { g, config: config.model, pairs, ticksPerDay, weight, values });
  const last = g.op('Slice', [states, g.ints([-1]), g.ints([Number.MAX_SAFE_INTEGER]), g.ints([0])]); // [1, D]
  const { normalizeUser, temperature } = model.shape.scoring;
  const scaled = g.op('Mul', [normalizeUser ? unitRows(g, last) : last, g.float(1 / temperature)]);
  g.output(scaled, 'state', [1, model.definition.d]);
  return g;
}

/** Rows by id; ids outside the table add nothing. */
function rowsOrNothing(g: Graph, table: Value, { ids, rows }: { ids: Value; rows: number }): Value {
  const inside = g.op('And', [g.op('GreaterOrEqual', [ids, g.int(0)]), g.op('Less', [ids, g.int(rows)])]);
  const found = g.op('Gather', [table, g.op('Where', [inside, ids, g.int(0)])]);
  return g.op('Mul', [found, g.op('Unsqueeze', [g.cast(inside, 'float'), g.ints([1])])]);
}

/** `named`: number of items with an original id; later rows are reserved. */
function scorer({
  model,
  weights,
  named,
}: {
  model: Model;
  weights: ReadonlyMap<string, Float32Array>;
  named: number;
}): Graph {
  const g = new Graph('scorer');
  const { d } = model.definition;
  const state = g.input('state', 'float', ['b', d]);
  const rows = g.weights('items', weights.get('items')!.subarray(0, named * d), [named, d]);
  const vectors = model.shape.scoring.normalizeItem ? unitRows(g, rows) : rows;
  const scores = g.op('MatMul', [state, g.op('Transpose', [vectors], { perm: [1, 0] })]);
  g.output(scores, 'scores', ['b', named]);
  return g;
}
