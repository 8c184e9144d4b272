// Ids as logs hold them, and as they are most easily spoiled.
import type { Random } from '../../../../src/util/random.js';

const KINDS: Record<string, (n: number) => string> = {
  'small numbers': n => String(n),
  'negative numbers': n => String(n - 6),
  'wide numbers': n => String(n * 10 ** 12),
  'around 2^53': n => String(9_007_199_254_740_988n + BigInt(n)),
  'the ends of 64 bits': n => String((n % 2 === 0 ? 1n : -1n) * (9_223_372_036_854_775_807n - BigInt(n >> 1))),
  'beyond 64 bits': n => String(18_446_744_073_709_551_610n + BigInt(n)),
  'leading zeros': n => '0'.repeat(n % 4) + String(7 + (n >> 2)),
  'almost numbers': n => ['7', '7.0', '7.', '+7', '7e0', '07', '0x7', '-0', '0', '1_0', '1e30', '.7', '7,0'][n % 13]!,
  words: n => ['apple', 'Apple', 'APPLE', 'pear', 'fig', 'nut', 'a'][n % 7]! + (n >= 7 ? n : ''),
  'words of databases': n =>
    ['null', 'NULL', 'None', 'nan', 'NaN', 'true', 'false', String.raw`\N`, 'inf', 'NA', 'undefined', '-', '#'][
      n % 13
    ]!,
  'letters of the world': n =>
    ['é', 'e\u0301', 'ß', '日本', '👩‍🚀', 'Ж', '\u202eabc', 'ﬁ', 'Å', 'İ', '𝒳', 'ñ', 'क्'][n % 13]!,
  'beginning with U+FEFF': n => `\ufeff${n}`,
  'commas and quotes': n =>
    ['a,b', 'say "hi"', "o'neil", '"', '""', ',', ';', 'a;b|c', "'", '`', 'a"b', ',,', '#x'][n % 13]!,
  blanks: n => ['a b', ' a', 'a ', 'a', '\u00a0a', 'a\u00a0', '  ', ' ', 'a  b', '\u3000', 'b ', ' b', 'b'][n % 13]!,
  paths: n => ['a\\b', 'C:\\', '\\', '/x/y', '\\n', '\\"', '{}', '[1]', '%d', '$1', '--x', '/*', '*/'][n % 13]!,
  'long texts': n => 'x'.repeat(200 + n) + n,
  uuids: n => `3f2504e0-4f89-11d3-9a0c-0305e82c33${String(n).padStart(2, '0')}`,
};

export const ID_KINDS = Object.keys(KINDS);

/** Different ids of one kind. */
export function idsOf(kind: string, count: number, random: Random): string[] {
  const first = random.below(3);
  return [...new Set(Array.from({ length: count }, (_, n) => KINDS[kind]!(first + n)))];
}
