// `turbogr recommend`: what a trained run would show next, to a user of the log or to somebody new.
import { Command } from '@commander-js/extra-typings';
import { openRecommender } from '../recipes/recommend.js';
import { UserError } from '../util/errors.js';
import { table } from '../util/terminal.js';
import { parseWhole } from './config-flags.js';

export function recommendCommand() {
  return new Command('recommend')
    .description('the top items for a user of the log, or for a history of item ids')
    .argument('<run>', 'folder of the run')
    .option('--user <id>', "user id as in the log; all of the user's events are the history")
    .option('--history <ids>', 'item ids as in the log, oldest first, separated by commas')
    .option('-k, --count <count>', 'how many items', parseWhole, 10)
    .option('--include-seen', 'also recommend items of the history')
    .option('--json', 'print JSON')
    .action(async (run, { user, history, count, includeSeen, json }) => {
      if ((user === undefined) === (history === undefined)) {
        throw new UserError('bad-flag', 'give --user or --history, one of them', 'For example: --history 12,48,7');
      }
      using recommender = openRecommender(run);
      const events = user === undefined ? splitIds(history ?? '') : recommender.historyOf(user);
      const items = await recommender.recommend(events, { k: count, exclude: includeSeen ? 'none' : 'history' });
      const rows = items.map(({ item, score }, i) => [String(i + 1), item, score.toFixed(4)]);
      process.stdout.write(`${json ? JSON.stringify(items) : table(['', 'item', 'score'], rows)}\n`);
    });
}

function splitIds(list: string): string[] {
  return list
    .split(',')
    .map(id => id.trim())
    .filter(id => id !== '');
}
