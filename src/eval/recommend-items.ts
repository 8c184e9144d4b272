// The best next items for one history, in dense ids.

import type { Model } from '../nn/model.js';
import { Tape } from '../ops/tape.js';
import { topK } from '../ops/top-k.js';
import { lastStates, rankingTable } from './last-states.js';

export interface History {
  /** Dense item ids, oldest first; at least one. */
  items: Int32Array;
  times: Float64Array;
  actions: Int32Array;
  /** The moment to recommend for. */
  at: number;
}

export interface RecommendSettings {
  k: number;
  excludeHistory: boolean;
  /** Items that can be named: ids from here on are reserved rows of the catalogue and never recommended. */
  named: number;
  normalizeItem: boolean;
}

export interface RankedItem {
  item: number;
  score: number;
}

export async function recommendItems(
  model: Model,
  history: History,
  settings: RecommendSettings,
): Promise<RankedItem[]> {
  const { device, definition } = model;
  const from = Math.max(0, history.items.length - definition.maxLength);
  const time = history.times.slice(from);
  const nextTime = Float64Array.from(time, (_, i) => time[i + 1] ?? history.at);
  const offsets = Int32Array.of(0, time.length);
  using tape = new Tape(device, { training: false });
  using batch = model.upload({
    offsets,
    item: history.items.slice(from),
    action: history.actions.slice(from),
    time,
    nextTime,
  });
  const reserved = Array.from({ length: model.shape.items - settings.named }, (_, i) => settings.named + i);
  const excluded = Int32Array.from([...(settings.excludeHistory ? history.items : []), ...reserved]);
  using ids = device.from(excluded);
  using excludedOffsets = device.from(Int32Array.of(0, excluded.length));
  const queries = lastStates(tape, model, batch, offsets);
  const table = rankingTable(tape, model, settings.normalizeItem);
  const k = Math.min(settings.k, model.shape.items);
  const top = topK(device, queries, table, { k, excluded: { ids, offsets: excludedOffsets } });
  const [items, scores] = await Promise.all([device.read(top.ids), device.read(top.scores)]);
  top.ids.dispose();
  top.scores.dispose();
  return Array.from(items, (item, i) => ({ item, score: scores[i]! })).filter(({ item }) => item >= 0);
}
