// Detects the format of dates that are not ISO 8601. 01/02/2024 may be the second of January or the first of February: if no
// value of the sample decides it, the user is asked.

import { ChoiceError } from './choice-error.js';
import type { Engine } from './engine.js';
import { type ColumnShape, countFormats } from './sample-columns.js';
import type { Source } from './source.js';

const SEPARATORS = ['/', '.', '-'];
const CLOCKS = ['', ' %H:%M', ' %H:%M:%S', ' %H:%M:%S.%f', ' %I:%M %p', ' %I:%M:%S %p', 'T%H:%M:%S'];
/** Two-digit years come last: %Y also accepts two digits, as the year 24. */
const ORDERS = [
  { dayFirst: '%d_%m_%Y', monthFirst: '%m_%d_%Y' },
  { dayFirst: '%d_%m_%y', monthFirst: '%m_%d_%y' },
];
const NAMED_MONTHS = [
  '%d %b %Y',
  '%d %B %Y',
  '%b %d, %Y',
  '%B %d, %Y',
  '%d-%b-%Y',
  '%d-%b-%y',
  '%d/%b/%Y:%H:%M:%S %z',
  '%a %b %d %H:%M:%S %z %Y',
  '%a, %d %b %Y %H:%M:%S %z',
  '%d %b %Y %H:%M:%S',
  '%b %d, %Y %H:%M:%S',
  '%b %d, %Y %I:%M:%S %p',
];

interface Form {
  readonly formats: readonly string[];
}

function forms(shape: ColumnShape): Form[] {
  const twoDigits = shape.examples.every(text => /^\d{1,2}[/.-]\d{1,2}[/.-]\d{2}(\D|$)/.test(text));
  const orders = ORDERS.slice(twoDigits ? 1 : 0, twoDigits ? 2 : 1);
  const numeric = SEPARATORS.flatMap(separator =>
    orders.flatMap(({ dayFirst, monthFirst }) =>
      CLOCKS.map(clock => ({
        formats: [dayFirst, monthFirst].map(order => `${order.replaceAll('_', separator)}${clock}`),
      })),
    ),
  );
  return [...numeric, ...NAMED_MONTHS.map(format => ({ formats: [format] }))];
}

/** The format that parses most of the sample, and how many values it parses. */
export async function guessFormat(
  engine: Engine,
  source: Source,
  { name, shape }: { name: string; shape: ColumnShape },
): Promise<{ format: string; reads: number } | undefined> {
  const candidates = forms(shape);
  const counts = await countFormats(engine, source, { name, formats: candidates.flatMap(({ formats }) => formats) });
  let best: { format: string; reads: number } | undefined;
  let twin: string | undefined;
  let at = 0;
  for (const { formats } of candidates) {
    for (const format of formats) {
      const reads = counts[at++] ?? 0;
      if (reads > (best?.reads ?? 0)) {
        best = { format, reads };
        twin = undefined;
      } else if (best && reads === best.reads && formats.includes(best.format)) twin = format;
    }
  }
  if (best && twin !== undefined) throw ambiguousDates(name, [best.format, twin], shape);
  return best;
}

function ambiguousDates(name: string, choices: readonly string[], { examples }: ColumnShape): ChoiceError {
  return new ChoiceError({
    code: 'ambiguous-dates',
    message: `the dates in '${name}' may have the day or the month first: ${examples.join(', ')}`,
    remedy: `Say which: ${choices.map(choice => `--time-format '${choice}'`).join(' or ')}.`,
    option: 'timeFormat',
    choices,
  });
}
