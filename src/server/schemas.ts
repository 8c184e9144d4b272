// The requests and answers of the HTTP server: one schema for checking, for TypeScript and for the OpenAPI document.

import { z } from 'zod';
import { ITEM_FILTER } from '../data/items/item-filter.js';

const MOST_EVENTS = 20_000;
const MOST_ITEMS = 10_000;
const MOST_K = 1_000;

const ID = z.union([z.string().min(1).max(500), z.int()]).describe('id as in the log');
const TIME = z
  .number()
  .min(0)
  .lt(2 ** 62)
  .describe('in the unit of the log');

const EVENT = z.strictObject({
  item: ID,
  time: TIME.optional(),
  action: z.int().min(0).max(2_147_483_647).optional(),
});

const WHO = {
  user: ID.optional().describe('a user of the log or of posted events; or give a history'),
  history: z.array(EVENT).max(MOST_EVENTS).optional().describe('events, oldest first; unknown items are skipped'),
};
const AT = TIME.optional().describe('the time to recommend for (default: now)');
const K = z.int().min(1).max(MOST_K).default(10);

export const RECOMMEND_REQUEST = z.strictObject({
  ...WHO,
  k: K,
  exclude: z
    .union([z.enum(['history', 'none']), z.array(ID).max(MOST_ITEMS)])
    .optional()
    .describe(
      "'history' excludes items the user already had, 'none' nothing; a list is excluded in addition to the default",
    ),
  allow: z.array(ID).max(MOST_ITEMS).optional().describe('only these items'),
  filter: ITEM_FILTER.optional(),
  at: AT,
});
export type RecommendBody = z.infer<typeof RECOMMEND_REQUEST>;

export const RANK_REQUEST = z.strictObject({ ...WHO, items: z.array(ID).min(1).max(MOST_K), at: AT });
export const SIMILAR_REQUEST = z.strictObject({ item: ID, k: K, filter: ITEM_FILTER.optional() });
export const EMBED_REQUEST = z.strictObject({
  users: z.array(ID).max(100).optional(),
  histories: z.array(z.array(EVENT).min(1).max(MOST_EVENTS)).max(100).optional(),
  items: z.array(ID).max(MOST_K).optional(),
  at: AT,
});
export const EVENTS_REQUEST = z.strictObject({
  user: ID,
  events: z.array(EVENT).min(1).max(1_000),
  key: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe('makes the append idempotent; the header Idempotency-Key does the same'),
});

const ITEM = z.object({
  item: z.string(),
  score: z.number(),
  title: z.string().optional(),
  metadata: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).optional(),
});
const ANSWER = { model: z.string(), took_ms: z.number() };

export const ITEMS_ANSWER = z.object({ items: z.array(ITEM), ...ANSWER });
export const RECOMMEND_ANSWER = ITEMS_ANSWER.extend({
  recommendation_id: z.string(),
  basis: z.enum(['model', 'popularity']).describe('popularity if the history has no known item'),
});
const VECTOR = z.array(z.number());
export const EMBED_ANSWER = z.object({
  users: z.array(z.object({ user: z.string(), vector: VECTOR })).optional(),
  histories: z.array(z.object({ vector: VECTOR })).optional(),
  items: z.array(z.object({ item: z.string(), vector: VECTOR })).optional(),
  dimension: z.int(),
  ...ANSWER,
});
export const EVENTS_ANSWER = z.object({ accepted: z.int(), duplicate: z.boolean() });
export const MODELS_ANSWER = z.object({
  models: z.array(
    z.object({
      name: z.string(),
      version: z.string(),
      kind: z.string(),
      users: z.int(),
      items: z.int(),
      dimension: z.int(),
      item_columns: z.array(z.string()),
      loaded_at: z.string(),
    }),
  ),
});
export const PROBLEM = z
  .object({ error: z.object({ code: z.string(), message: z.string(), remedy: z.string().optional() }) })
  .describe('what is wrong, and what to do');
