// `turbogr recommend`: top items of a trained run, for a user of the log or for a given history.
import { existsSync, readFileSync } from 'node:fs';
import { Command } from '@commander-js/extra-typings';
import { z } from 'zod';
import { checkFilter, type ItemFilter } from '../data/items/item-filter.js';
import { blameStore } from '../data/store/damaged-store.js';
import { recommendAll, type RecommendAllOptions } from '../jobs/recommend-all.js';
import { openRecommender, type Recommender } from '../jobs/recommend.js';
import type { HistoryInput } from '../jobs/recommend-request.js';
import { UserError } from '../util/errors.js';
import { interruptible } from '../util/interrupt.js';
import { formatCount, ProgressLine } from '../util/terminal.js';
import { printItems } from './print-items.js';
import { wholeNumber } from '../util/number-flags.js';

function collect(value: string, earlier: string[] | undefined): string[] {
  return [...(earlier ?? []), value];
}

export function recommendCommand() {
  return new Command('recommend')
    .description('the top items for a user of the log, or for a history of item ids')
    .argument('<run>', 'folder of a run, or of a bundle that `turbogr export` wrote')
    .option('--all', 'every user of the log, to the file of --out; resumes an earlier call')
    .option('--out <file>', 'where --all writes: .parquet, .csv or .jsonl')
    .option('--user <id>', "user id as in the log; all of the user's events are the history")
    .option('--history <ids>', 'item ids as in the log, oldest first, separated by commas, or a JSON list', collect)
    .option('--history-item <id>', 'one item id, verbatim (may contain commas); may be repeated', collect)
    .option('--history-file <file>', 'a JSON list of ids or of {item, time, action}; - reads standard input')
    .option('-k, --count <count>', 'how many items', wholeNumber, 10)
    .option('--at <time>', "time to recommend for, in the log's unit or as a date (default: now)")
    .option('--include-seen', 'also recommend items of the history (default: as the run is evaluated)')
    .option('--exclude-seen', 'exclude items of the history')
    .option('--items <file>', 'titles and other columns of items: CSV, Parquet or JSON lines')
    .option('--items-key <column>', 'column of the item ids in that file (default: guessed)')
    .option(
      '--filter <json>',
      'conditions on item columns, such as {"genre": "comedy", "year": {"gte": 1990}}',
      jsonFilter,
    )
    .option('--allow <ids>', 'only these items, separated by commas', splitIds)
    .option('--deny <ids>', 'none of these items, separated by commas', splitIds)
    .option('--store <folder>', "the run's sequence store, if it was moved")
    .option('--no-verify', "do not verify the store's checksums")
    .option('--json', 'print JSON')
    .action(async (run, { user, all, out, count, at, includeSeen, excludeSeen, store, verify, json, ...rest }) => {
      const given = readHistory(rest);
      if ([user, given, all].filter(way => way !== undefined).length !== 1) {
        throw new UserError('bad-flag', 'give one of --user, a history or --all', 'For example: --history 12,48,7');
      }
      if ((out === undefined) === (all ?? false)) {
        throw new UserError('bad-flag', '--all and --out belong together', 'For example: --all --out recs.parquet');
      }
      using recommender = openRecommender(run, store === undefined ? {} : { store });
      if (verify) await recommender.verify();
      if (rest.items !== undefined) await recommender.loadItems(rest.items, rest.itemsKey);
      const { filter, allow, deny } = rest;
      const exclude = includeSeen ? ('none' as const) : excludeSeen ? ('history' as const) : undefined;
      const moment = at === undefined ? undefined : recommender.parseMoment(at);
      const options = { k: count, exclude, filter, allow, deny, at: moment };
      if (out !== undefined) {
        await writeAll(recommender, { ...options, out }, json ?? false);
        return;
      }
      try {
        const events = given ?? recommender.historyOf(user ?? '');
        printItems(recommender, await recommender.recommend(events, options), json ?? false);
      } catch (error) {
        if (!verify) await blameStore(error, recommender);
        throw error;
      }
    });
}

async function writeAll(recommender: Recommender, options: RecommendAllOptions, json: boolean): Promise<void> {
  const progress = new ProgressLine();
  const report = await interruptible(
    signal =>
      recommendAll(recommender, {
        ...options,
        signal,
        onProgress: (users, of) => progress.update(`${formatCount(users)} of ${formatCount(of)} users`),
      }),
    () => process.stderr.write('turbogr: finishing the current part; run the same command to resume\n'),
  );
  progress.clear();
  if (json) process.stdout.write(`${JSON.stringify(report)}\n`);
  else if (report.done) process.stdout.write(`${options.out}: ${formatCount(report.users)} users\n`);
}

const ID = z.union([z.string(), z.number()]);
const HISTORY = z.array(
  z.union([ID, z.strictObject({ item: ID, time: z.number().optional(), action: z.int().optional() })]),
);

interface HistoryFlags {
  history?: string[] | undefined;
  historyItem?: string[] | undefined;
  historyFile?: string | undefined;
}

/** The events of all flags, in this order; undefined if there are none. */
function readHistory({ history, historyItem, historyFile }: HistoryFlags): HistoryInput | undefined {
  if (!history && !historyItem && historyFile === undefined) return undefined;
  const listed = (history ?? []).flatMap(list => (list.trimStart().startsWith('[') ? parseJson(list) : splitIds(list)));
  const filed = historyFile === undefined ? [] : parseJson(readText(historyFile));
  return [...filed, ...listed, ...(historyItem ?? [])];
}

function readText(file: string): string {
  if (file === '-') return readFileSync(0, 'utf8');
  if (existsSync(file)) return readFileSync(file, 'utf8');
  throw new UserError('no-file', `${file} does not exist`, 'Check the path of --history-file.');
}

function parseJson(text: string): HistoryInput {
  try {
    return HISTORY.parse(JSON.parse(text)).map(event => {
      if (typeof event !== 'object') return event;
      const { item, time, action } = event;
      return { item, ...(time !== undefined && { time }), ...(action !== undefined && { action }) };
    });
  } catch (cause) {
    throw new UserError(
      'bad-history',
      `the history is not a JSON list of ids or events: ${text.slice(0, 60)}`,
      'For example: ["12", {"item": "a, b", "time": 1700000000}]',
      { cause },
    );
  }
}

function splitIds(list: string): string[] {
  return list
    .split(',')
    .map(id => id.trim())
    .filter(id => id !== '');
}

/** A filter as JSON. */
export function jsonFilter(text: string): ItemFilter {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    json = undefined;
  }
  return checkFilter(json ?? text);
}
