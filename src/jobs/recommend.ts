// In-process recommendations from a trained run: histories and answers use original ids.

import { type ItemColumns, readItemsFile, readStoredColumns } from '../data/items/item-columns.js';
import { parseTime } from '../data/prepare/times.js';
import type { SequenceStore } from '../data/store/sequence-store.js';
import { type History, ItemRanker, type RankRequest } from '../eval/item-ranker.js';
import { LogPriors } from '../eval/priors/log-priors.js';
import { logitRows } from '../eval/priors/prior-cases.js';
import { PriorScorer } from '../eval/priors/prior-scorer.js';
import { UserError } from '../util/errors.js';
import { isBundle, OpenBundle } from './bundle.js';
import { CandidateFilter } from './candidate-filter.js';
import type { Catalogue } from './catalogue.js';
import { KnownItems } from './known-items.js';
import { currentTime } from './moment.js';
import { OpenRun, type OpenRunOptions } from './open-run.js';
import type {
  HistoryEvent,
  HistoryInput,
  Recommendation,
  RecommendOptions,
  RecommendRequest,
} from './recommend-request.js';

/** A request in dense ids; without a history it is answered by popularity. */
export type PlannedRequest = Omit<RankRequest, 'history'> & { readonly history: History | undefined };

export class Recommender {
  readonly #run: OpenRun | OpenBundle;
  readonly #catalogue: Catalogue;
  #ranker: Promise<ItemRanker> | undefined;
  #popular: Int32Array | undefined;
  #columns: ItemColumns | undefined;
  readonly #items: KnownItems;
  readonly #candidates: CandidateFilter;

  constructor(run: OpenRun | OpenBundle) {
    this.#run = run;
    this.#catalogue = run.catalogue;
    this.#items = new KnownItems(run.catalogue);
    this.#candidates = new CandidateFilter(this.#items, () => this.#itemColumns());
  }

  /** The top items for a history, oldest event first. An empty history is answered by popularity and marked as such. */
  async recommend(history: HistoryInput, options: RecommendOptions = {}): Promise<Recommendation[]> {
    const [answer] = await this.recommendMany([{ history, ...options }]);
    return answer!;
  }

  /** Answers several requests in one jagged batch, with the same bits as one by one. */
  recommendMany(requests: readonly RecommendRequest[]): Promise<Recommendation[][]> {
    return this.answer(requests.map(request => this.plan(request)));
  }

  /** Answers requests planned by this recommender. */
  async answer(requests: readonly PlannedRequest[]): Promise<Recommendation[][]> {
    const ranker = await this.#openRanker();
    const ranked = await ranker.rank(
      requests.flatMap(({ history, ...rest }) => (history ? [{ history, ...rest }] : [])),
    );
    let next = 0;
    return requests.map(({ history, ...rest }) =>
      history
        ? ranked[next++]!.map(({ item, score }) => ({ item: this.originalItem(item), score }))
        : this.#mostPopular(rest),
    );
  }

  /** Validates a request and converts it to dense ids. */
  plan(request: RecommendRequest): PlannedRequest {
    return this.#planned(this.#items.history(request.history, request), request);
  }

  /** The same for a user of the log by number, 0 to `users` - 1. */
  planAt(user: number, options: RecommendOptions = {}): PlannedRequest {
    return this.#planned(this.#items.logged(this.#log().sequence(user), options), options);
  }

  #planned(history: History | undefined, request: RecommendOptions): PlannedRequest {
    const k = checkedCount(request.k);
    const { evaluation } = this.#run.config;
    const exclude = request.exclude ?? (evaluation.exclude === 'none' ? 'none' : 'history');
    const denied = (request.deny ?? []).map(item => this.#items.find(item)).filter(id => id !== undefined);
    const candidates = this.#candidates.choose(request.filter ?? {}, request.allow);
    return {
      history,
      k,
      excluded: Int32Array.from([...(exclude === 'history' && history ? history.items : []), ...denied]),
      ...(candidates && { candidates }),
    };
  }

  /** The given items, best first, without duplicates. */
  async rank(history: HistoryInput, items: readonly (string | number)[], options: RecommendOptions = {}) {
    const ids = new Set(items.map(item => this.#items.require(item)));
    return await this.recommend(history, { ...options, k: Math.max(1, ids.size), allow: items, exclude: 'none' });
  }

  /** Similar items, by cosine of their vectors. */
  async similar(
    item: string | number,
    options: Pick<RecommendOptions, 'k' | 'filter'> = {},
  ): Promise<Recommendation[]> {
    const ranker = await this.#openRanker();
    const candidates = this.#candidates.choose(options.filter ?? {});
    const found = await ranker.similar(this.#items.require(item), checkedCount(options.k), candidates);
    return found.map(({ item: id, score }) => ({ item: this.originalItem(id), score }));
  }

  /** Vectors of histories: the dot product with an item's vector is the model's score. */
  async embedHistories(histories: readonly HistoryInput[], options: RecommendOptions = {}): Promise<Float32Array[]> {
    if (histories.length === 0) return [];
    const ranker = await this.#openRanker();
    const past = histories.map(history => {
      const known = this.#items.history(history, options);
      if (known) return known;
      throw new UserError('empty-history', 'an empty history has no vector', 'Give at least one item of the log.');
    });
    const states = await ranker.states(past);
    const d = this.dimension;
    return past.map((_, h) => states.slice(h * d, (h + 1) * d));
  }

  /** [V, D] vectors of all items with an original id, in the order of `originalItem`. */
  async embedItems(): Promise<Float32Array> {
    const rows = await (await this.#openRanker()).itemVectors();
    return rows.subarray(0, this.items * this.dimension);
  }

  /** Vectors of some items. */
  async embedSome(items: readonly (string | number)[]): Promise<Float32Array[]> {
    const ids = items.map(item => this.#items.require(item));
    if (ids.length === 0) return [];
    const rows = await (await this.#openRanker()).itemVectors(Int32Array.from(ids));
    return ids.map((_, i) => rows.slice(i * this.dimension, (i + 1) * this.dimension));
  }

  /** Length of vectors. */
  get dimension(): number {
    return this.#run.model.definition.d;
  }

  /** Number of items with an original id. */
  get items(): number {
    return this.#items.count;
  }

  /** Users of the log; a bundle has none. */
  get users(): number {
    return this.#run.source?.users ?? 0;
  }

  get run(): OpenRun | OpenBundle {
    return this.#run;
  }

  originalItem(id: number): string {
    return this.#catalogue.vocabulary.original(id);
  }

  /** Titles and other columns of an items file, for `describe` and filters. */
  async loadItems(file: string, key?: string): Promise<void> {
    const { vocabulary } = this.#catalogue;
    const catalogue = { items: this.items, itemId: (id: string | number | bigint) => vocabulary.dense(id) };
    this.#columns = await readItemsFile(catalogue, { file, ...(key !== undefined && { key }) });
    this.#candidates.forget();
  }

  /** Names of the item columns for answers and filters. */
  columnNames(): string[] {
    return [...this.#itemColumns().keys()];
  }

  /** Columns of an item from the items file or the store, without missing values. */
  describe(item: string | number): Record<string, string | number | boolean> {
    const id = this.#items.require(item);
    const known: Record<string, string | number | boolean> = {};
    for (const [name, values] of this.#itemColumns()) {
      const value = values[id];
      if (value !== null && value !== undefined) known[name] = value;
    }
    return known;
  }

  /** Parses a time: a number in the unit of the log, or a date. */
  parseMoment(text: string): number {
    return parseTime(text, this.#catalogue.timeKind);
  }

  /** The current time in the unit of the log; undefined for a log without times. */
  currentTime(): number | undefined {
    return currentTime(this.#catalogue.timeKind);
  }

  hasUser(user: string | number): boolean {
    return this.#run.source?.userId(user) !== undefined;
  }

  /** A user's whole history in the log, by the log's user id. */
  historyOf(user: string | number): HistoryEvent[] {
    const id = this.#log().userId(user);
    if (id !== undefined) return this.historyAt(id);
    throw new UserError(
      'unknown-user',
      `the log has no user "${user}"`,
      'Give a history instead: new users need no id.',
    );
  }

  /** The log's id of a user by number. */
  originalUser(id: number): string {
    return this.#log().originalUser(id);
  }

  /** The history of a user by number, 0 to `users` - 1. */
  historyAt(id: number): HistoryEvent[] {
    const source = this.#log();
    const { items, times, actions } = source.sequence(id);
    return Array.from(items, (item, i) => ({
      item: source.originalItem(item),
      ...(times && { time: times[i]! }),
      ...(actions && { action: actions[i]! }),
    }));
  }

  /** Verifies the checksums of the run's store; rejects on mismatch. A bundle is verified on opening. */
  async verify(): Promise<void> {
    await this.#run.source?.verify();
  }

  #log(): SequenceStore {
    if (this.#run.source) return this.#run.source;
    throw new UserError('no-log', 'a bundle holds no log, so it knows no users', 'Give a history instead.');
  }

  /** Frees threads and memory; later calls are refused. */
  close(): void {
    this.#run[Symbol.dispose]();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #itemColumns(): ItemColumns {
    this.#columns ??= this.#run.source ? readStoredColumns(this.#run.source) : new Map();
    return this.#columns;
  }

  #mostPopular({ k, excluded, candidates }: Omit<RankRequest, 'history'>): Recommendation[] {
    const { vocabulary } = this.#catalogue;
    this.#popular ??= Int32Array.from({ length: this.items }, (_, id) => id).sort(
      (a, b) => vocabulary.count(b) - vocabulary.count(a) || a - b,
    );
    const left = new Set(excluded);
    const wanted = candidates && new Set(candidates.ids);
    const found: Recommendation[] = [];
    for (const id of this.#popular) {
      if (found.length === k) break;
      if (left.has(id) || wanted?.has(id) === false) continue;
      found.push({ item: this.originalItem(id), score: vocabulary.count(id), basis: 'popularity' });
    }
    return found;
  }

  /** Created on first use: priors need the log's statistics. */
  #openRanker(): Promise<ItemRanker> {
    const { priors, source, model } = this.#run;
    const options = { named: this.items };
    this.#ranker ??=
      priors && source
        ? logitRows(model).then(logits => {
            const scorer = new PriorScorer(model.device, new LogPriors(source, 'future'), { weights: priors, logits });
            return new ItemRanker(model, { ...options, priors: scorer });
          })
        : Promise.resolve(new ItemRanker(model, options));
    return this.#ranker;
  }
}

function checkedCount(k = 10): number {
  if (Number.isInteger(k) && k >= 1) return k;
  throw new UserError('bad-count', `k is ${k}`, 'Ask for at least one item.');
}

/** Opens a run, or a bundle of one, for recommending. */
export function openRecommender(path: string, options: OpenRunOptions = {}): Recommender {
  return new Recommender(
    isBundle(path) ? new OpenBundle(path, options) : new OpenRun(path, { ...options, coldItems: 'from-labels' }),
  );
}
