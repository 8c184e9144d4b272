// `turbogr embed`: vectors of items and users with their original ids.
import { Command, Option } from '@commander-js/extra-typings';
import { embed } from '../jobs/embed.js';
import { openRecommender } from '../jobs/recommend.js';
import { formatCount } from '../util/terminal.js';

export function embedCommand() {
  return new Command('embed')
    .description(
      "write vectors of items and users; the dot product of a user's and an item's vector is the model's score",
    )
    .argument('<run>', 'folder of a run, or of a bundle, which has items only')
    .requiredOption('--out <file>', '.safetensors, .parquet, .csv or .jsonl')
    .addOption(
      new Option('--of <what>', 'whose vectors').choices(['items', 'users', 'both'] as const).default('items' as const),
    )
    .option('--at <time>', "time of the users' vectors, in the log's unit or as a date (default: now)")
    .action(async (run, { out, of, at }) => {
      using recommender = openRecommender(run);
      await recommender.verify();
      const kinds = of === 'both' ? (['items', 'users'] as const) : [of];
      const moment = at === undefined ? undefined : recommender.parseMoment(at);
      const { items, users } = await embed(recommender, { out, kinds, at: moment });
      process.stdout.write(`${out}: ${formatCount(items)} items, ${formatCount(users)} users\n`);
    });
}
