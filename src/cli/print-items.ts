// Prints items with their scores, as text or JSON; with title or name if the run has item columns.
import type { Recommender } from '../jobs/recommend.js';
import type { Recommendation } from '../jobs/recommend-request.js';
import { table } from '../util/terminal.js';

const TITLES = ['title', 'name'];

export function printItems(recommender: Recommender, items: readonly Recommendation[], json: boolean): void {
  const columns = recommender.columnNames();
  if (json) {
    const described = items.map(item =>
      columns.length > 0 ? { ...item, metadata: recommender.describe(item.item) } : item,
    );
    process.stdout.write(`${JSON.stringify(described)}\n`);
    return;
  }
  if (items.length === 0) {
    process.stdout.write(
      'No items: history, filters and lists exclude every item (recommend --include-seen keeps those of the history).\n',
    );
    return;
  }
  if (items.some(({ basis }) => basis === 'popularity')) {
    process.stdout.write('The history has no item that the model knows: these are the most popular ones.\n');
  }
  const title = TITLES.find(name => columns.includes(name));
  const rows = items.map(({ item, score }, i) => [
    String(i + 1),
    item,
    score.toFixed(4),
    ...(title === undefined ? [] : [String(recommender.describe(item)[title] ?? '')]),
  ]);
  process.stdout.write(`${table(['', 'item', 'score', ...(title === undefined ? [] : [title])], rows)}\n`);
}
