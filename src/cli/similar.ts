// `turbogr similar`: items similar to a given one.
import { Command } from '@commander-js/extra-typings';
import { openRecommender } from '../jobs/recommend.js';
import { countNumber } from '../util/number-flags.js';
import { printItems } from './print-items.js';
import { jsonFilter } from './recommend.js';

export function similarCommand() {
  return new Command('similar')
    .description('similar items, by cosine of their vectors')
    .argument('<run>', 'folder of a run, or of a bundle')
    .argument('<item>', 'item id as in the log')
    .option('-k, --count <count>', 'how many items', countNumber, 10)
    .option('--items <file>', 'titles and other columns of items: CSV, Parquet or JSON lines')
    .option('--items-key <column>', 'column of the item ids in that file (default: guessed)')
    .option('--filter <json>', 'conditions on item columns', jsonFilter)
    .option('--json', 'print JSON')
    .action(async (run, item, { count, items, itemsKey, filter, json = false }) => {
      using recommender = openRecommender(run);
      await recommender.verify();
      if (items !== undefined) await recommender.loadItems(items, itemsKey);
      printItems(recommender, await recommender.similar(item, { k: count, filter }), json);
    });
}
