// Sampled losses with logit sharing: tokens form groups of k, and the draws of the whole group are negatives of each token.
// A row is looked up once for k tokens; see `shareNegatives` for the groups.
//
// T tokens, D width, V items, G groups of k tokens, R draws per token.

import type { Call } from '../native/call.js';
import type { Tensor } from '../tensor/tensor.js';
import { type Segments, writeSegment } from './fetch-negatives.js';
import { writeMask, type MaskedEvents } from './mask-negatives.js';
import { LEAST_LENGTH, type LogitOptions, writeLogit } from './sampled-loss.js';
import type { SharedDraws } from './share-negatives.js';
import { expectSize } from './shape-rule.js';
import type { RowSource } from './row-source.js';
import type { Tape } from './tape.js';

/** What a token minimises over its positive and negatives. */
export type SampledObjective =
  | { kind: 'sampled-softmax'; logq?: Tensor<'f32'> | undefined }
  | { kind: 'bce' }
  /** `t`: calibration in [0, 1]. */
  | { kind: 'gbce'; t: number };

export interface SharedLossOptions extends LogitOptions {
  positives: Tensor<'i32'>; // [T], -1: this token is not trained
  /** They must live until the gradient is reduced or applied. */
  draws: SharedDraws;
  /** Segments of groups in order, with the rows of their draws; default: all at once, rows read from the source. */
  segments?: Segments | undefined;
  /** With segments: the positives' rows in the source, if ids are those of the whole table. */
  positiveRows?: Tensor<'i32'> | undefined; // [T]
  objective: SampledObjective;
  /** 'outputs': score all draws with each token's own output. 'scalars': reuse the logits of other tokens. */
  share: 'outputs' | 'scalars';
  /** If given, items of the token's own sequence are masked too. */
  history?: MaskedEvents | undefined;
}

const OBJECTIVES = ['sampled-softmax', 'bce', 'gbce'];

export function writeObjective(call: Call, objective: SampledObjective): Call {
  return call
    .number(OBJECTIVES.indexOf(objective.kind))
    .tensor(objective.kind === 'sampled-softmax' ? objective.logq : undefined)
    .number(objective.kind === 'gbce' ? objective.t : 0);
}

/** The mean loss, a scalar that lives as long as the tape. Its gradients are computed at once; `tape.backward` propagates them. */
export function sharedLoss(tape: Tape, u: Tensor<'f32'>, rows: RowSource, options: SharedLossOptions): Tensor<'f32'> {
  const { device } = tape;
  const { positives, draws, objective, share, history, positiveRows } = options;
  const [width, groups, factor, drawn] = [u.cols, draws.members.rows, draws.members.cols, draws.negatives.cols];
  expectSize('shared_loss', 'positives', positives, u.rows);
  const loss = tape.result([1, 1]);
  const du = tape.someTarget(u);
  const all = groups * factor;
  const coef = device.tensor([groups, drawn * factor]);
  const uhat = device.tensor([all, width]);
  const own = { ids: device.tensor([all, 1], 'i32'), coef: device.tensor([all, 1]) };
  const sum = options.segments && tape.own(device.tensor([1, 1], 'i64'));
  for (const segment of options.segments ?? [{ from: 0, count: groups }]) {
    const call = device.call('shared_loss').tensor(u).tensor(rows.value).number(rows.vocabulary).tensor(positives);
    writeSegment(call.number(groups).tensor(draws.members).tensor(draws.negatives), segment, { positiveRows, sum });
    writeObjective(writeMask(call, history).number(share === 'outputs' ? 0 : 1), objective);
    writeLogit(call, options).tensor(loss).grad(du).tensor(coef).tensor(uhat).tensor(own.ids).tensor(own.coef).submit();
  }
  const made = [coef, uhat, own.ids, own.coef];
  if (!tape.training) {
    for (const tensor of made) tensor.dispose();
    return loss;
  }
  for (const tensor of made) tape.own(tensor);
  const normalized = options.normalizeItem && { normalizedEps: options.eps ?? LEAST_LENGTH };
  rows.contribute({ ...own, source: uhat, scale: 1, ...normalized });
  const drawnRows = { ids: draws.negatives, members: factor, rounded: options.segments?.rounded };
  rows.contribute({ ...drawnRows, source: uhat, coef, scale: 1, ...normalized });
  return loss;
}
