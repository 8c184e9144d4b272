// Answers requests after their body has been validated.

import { randomUUID } from 'node:crypto';
import type { z } from 'zod';
import type { Recommender } from '../jobs/recommend.js';
import type { HistoryEvent, Recommendation } from '../jobs/recommend-request.js';
import { UserError } from '../util/errors.js';
import type { EventJournal } from './event-journal.js';
import type { ModelHost, ServedModel } from './model-host.js';
import type {
  EMBED_ANSWER,
  EMBED_REQUEST,
  ITEMS_ANSWER,
  RANK_REQUEST,
  RECOMMEND_ANSWER,
  RecommendBody,
  SIMILAR_REQUEST,
} from './schemas.js';

type ItemsAnswer = z.infer<typeof ITEMS_ANSWER>;
type Who = Pick<RecommendBody, 'user' | 'history'>;

/** Columns that may contain titles. */
const TITLES = ['title', 'name'];

export interface AnswersOptions {
  host: ModelHost;
  /** Events posted while serving; absent if not accepted. */
  journal: EventJournal | undefined;
  /** Maximum waiting time of a request in milliseconds. */
  timeout: number;
}

export class Answers {
  readonly #host: ModelHost;
  readonly #journal: EventJournal | undefined;
  readonly #timeout: number;

  constructor({ host, journal, timeout }: AnswersOptions) {
    this.#host = host;
    this.#journal = journal;
    this.#timeout = timeout;
  }

  recommend(body: RecommendBody): Promise<z.infer<typeof RECOMMEND_ANSWER>> {
    return this.#timed(async model => {
      const { exclude, allow, filter, k, at } = body;
      const ranked = await this.#ask(model, {
        history: this.#historyOf(model.recommender, body),
        k,
        allow,
        filter,
        at: at === undefined ? undefined : Math.trunc(at),
        ...(typeof exclude === 'string' ? { exclude } : { deny: exclude }),
      });
      const basis = ranked.some(item => item.basis === 'popularity') ? 'popularity' : 'model';
      return { items: described(model.recommender, ranked), recommendation_id: randomUUID(), basis };
    });
  }

  rank(body: z.infer<typeof RANK_REQUEST>): Promise<ItemsAnswer> {
    return this.#timed(async model => {
      const history = this.#historyOf(model.recommender, body);
      const known = new Set(body.items.map(String));
      for (const item of known) model.recommender.describe(item); // refuses what the model does not know
      const at = body.at === undefined ? undefined : Math.trunc(body.at);
      const ranked = await this.#ask(model, { history, k: known.size, allow: [...known], exclude: 'none', at });
      return { items: described(model.recommender, ranked) };
    });
  }

  similar({ item, k, filter }: z.infer<typeof SIMILAR_REQUEST>): Promise<ItemsAnswer> {
    return this.#timed(async ({ recommender }) => ({
      items: described(recommender, await recommender.similar(item, { k, filter })),
    }));
  }

  embed(body: z.infer<typeof EMBED_REQUEST>): Promise<z.infer<typeof EMBED_ANSWER>> {
    return this.#timed(async ({ recommender }) => {
      const { users, histories, items } = body;
      const options = { unknown: 'skip', at: body.at === undefined ? undefined : Math.trunc(body.at) } as const;
      const vectors = async (given: readonly HistoryEvent[][]) =>
        (await recommender.embedHistories(given, options)).map(vector => Array.from(vector));
      const past = users?.map(user => this.#historyOf(recommender, { user, history: undefined }));
      const ofUsers = past && (await vectors(past));
      const ofHistories = histories && (await vectors(histories.map(whole)));
      const ofItems = items && (await recommender.embedSome(items));
      return {
        ...(users && { users: users.map((user, i) => ({ user: String(user), vector: ofUsers![i]! })) }),
        ...(ofHistories && { histories: ofHistories.map(vector => ({ vector })) }),
        ...(items && { items: items.map((item, i) => ({ item: String(item), vector: Array.from(ofItems![i]!) })) }),
        dimension: recommender.dimension,
      };
    });
  }

  async #timed<T extends object>(
    work: (model: ServedModel) => Promise<T>,
  ): Promise<T & { model: string; took_ms: number }> {
    const start = performance.now();
    return await this.#host.use(async model => ({
      ...(await work(model)),
      model: `${model.name}@${model.version}`,
      took_ms: Math.round((performance.now() - start) * 1000) / 1000,
    }));
  }

  #ask({ recommender, batcher }: ServedModel, request: Parameters<Recommender['plan']>[0]): Promise<Recommendation[]> {
    const planned = recommender.plan({ ...request, unknown: 'skip' });
    const deadline = performance.now() + this.#timeout;
    return batcher.submit(planned, { size: planned.history?.items.length ?? 1, deadline });
  }

  /** A user's events from the log and those posted since, by time; or the given history. */
  #historyOf(recommender: Recommender, { user, history }: Who): HistoryEvent[] {
    if ((user === undefined) === (history === undefined)) {
      throw new UserError('bad-request', 'give either user or history', 'A new user is a history, which may be empty.');
    }
    if (user === undefined) return whole(history!);
    const posted = this.#journal?.eventsOf(String(user)) ?? [];
    const logged = posted.length === 0 || recommender.hasUser(user) ? recommender.historyOf(user) : [];
    return posted.length === 0 ? logged : [...logged, ...posted].sort((a, b) => (a.time ?? 0) - (b.time ?? 0));
  }
}

/** Times are integers on the device. */
function whole(history: readonly HistoryEvent[]): HistoryEvent[] {
  return history.map(event => (event.time === undefined ? event : { ...event, time: Math.trunc(event.time) }));
}

function described(recommender: Recommender, ranked: readonly Recommendation[]): ItemsAnswer['items'] {
  if (recommender.columnNames().length === 0) return ranked.map(({ item, score }) => ({ item, score }));
  return ranked.map(({ item, score }) => {
    const metadata = recommender.describe(item);
    const title = TITLES.map(name => metadata[name]).find(value => value !== undefined);
    return { item, score, ...(title !== undefined && { title: String(title) }), metadata };
  });
}
