// What a checkpoint holds besides tensors: the position of the training loop and its running sums.

import { z } from 'zod';
import { COST_FIT_STATE } from '../dist/balance/cost-fit.js';
import { NOTHING_YET } from './early-stopping.js';

export const TRAINING_STATE = z.strictObject({
  cursor: z.strictObject({ epoch: z.int(), position: z.int() }),
  early: z.strictObject({
    best: z.strictObject({ value: z.number(), step: z.int(), epoch: z.int() }).nullable(),
    waited: z.int(),
  }),
  /** Sums over the epoch so far; the loss is weighted by tokens. */
  epoch: z.strictObject({ loss: z.number(), tokens: z.int(), seconds: z.number(), flops: z.number() }),
  /** Cost per token and per token pair, fitted to measured step times. */
  cost: COST_FIT_STATE,
  seconds: z.number(),
});

export type TrainingState = z.infer<typeof TRAINING_STATE>;

export const FRESH_EPOCH: TrainingState['epoch'] = { loss: 0, tokens: 0, seconds: 0, flops: 0 };

/** Before the first step; the cost fit starts from the model's FLOPs. */
export const FRESH_STATE: Omit<TrainingState, 'cost'> = {
  cursor: { epoch: 0, position: 0 },
  early: NOTHING_YET,
  epoch: FRESH_EPOCH,
  seconds: 0,
};
