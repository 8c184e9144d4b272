// Recommendations for every user of the log, to a file: streamed in constant memory, and resumable: after an interruption the same
// command continues after the last written part.

import type { Recommender } from './recommend.js';
import type { RecommendOptions } from './recommend-request.js';
import { listFormat, PartFiles } from './part-files.js';

/** Users per part: the most that an interruption can lose. */
const PART_USERS = 4096;
/** Users per jagged batch. */
const BATCH_USERS = 128;

export interface RecommendAllOptions extends RecommendOptions {
  /** A file that ends in .parquet, .csv or .jsonl. */
  out: string;
  onProgress?: (users: number, of: number) => void;
  /** Stops after the current part; the next call resumes. */
  signal?: AbortSignal;
}

export interface RecommendAllReport {
  users: number;
  rows: number;
  /** Users whose lists already existed. */
  resumed: number;
  done: boolean;
}

/**
 * One row per user and rank: user, rank, item, score, basis. Without `at` the current time is used, so parts written before an
 * interruption have an earlier time than the rest.
 */
export async function recommendAll(
  recommender: Recommender,
  options: RecommendAllOptions,
): Promise<RecommendAllReport> {
  const { out, onProgress, signal, ...asked } = options;
  listFormat(out); // refused before the work starts
  const { users } = recommender;
  if (users === 0) recommender.historyAt(0); // a bundle has no users, and says so
  const identity = { digest: await recommender.run.model.digest(), users, ...asked };
  const columns = { user: 'VARCHAR', rank: 'INTEGER', item: 'VARCHAR', score: 'FLOAT', basis: 'VARCHAR' };
  const files = new PartFiles({ out, identity, columns });
  const parts = Math.ceil(users / PART_USERS);
  const report = { users, rows: 0, resumed: 0, done: false };
  for (let part = 0; part < parts; part++) {
    const [from, to] = [part * PART_USERS, Math.min(users, (part + 1) * PART_USERS)];
    if (files.has(part)) {
      report.resumed += to - from;
      continue;
    }
    if (signal?.aborted) return report;
    const rows: Record<string, unknown>[] = [];
    for (let user = from; user < to; user += BATCH_USERS) {
      const ids = Array.from({ length: Math.min(to, user + BATCH_USERS) - user }, (_, i) => user + i);
      const lists = await recommender.answer(ids.map(id => recommender.planAt(id, asked)));
      lists.forEach((list, i) => {
        const name = recommender.originalUser(ids[i]!);
        list.forEach(({ item, score, basis = 'model' }, r) =>
          rows.push({ user: name, rank: r + 1, item, score, basis }),
        );
      });
    }
    files.write(part, rows);
    report.rows += rows.length;
    onProgress?.(to, users);
  }
  await files.finish(parts);
  return { ...report, done: true };
}
