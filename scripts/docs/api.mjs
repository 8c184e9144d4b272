// Generates the API reference from the package's types: every name that `dist/index.d.ts` exports, its comment and declaration.
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const KINDS = 'function|class|interface|type|const|namespace|enum';

/** `[{ name, file, comment, declaration }]` in the order of the exports. */
export function readApi(index) {
  const text = readFileSync(index, 'utf8');
  const entries = [];
  for (const [, names, from] of text.matchAll(/export (?:type )?\{([^}]*)\} from '(\.[^']+)'/g)) {
    const file = sourceOf(index, from);
    for (const part of names.split(',')) {
      const [original, name = original] = part
        .trim()
        .replace(/^type /, '')
        .split(' as ');
      if (original) entries.push({ name, ...declarationOf(file, original) });
    }
  }
  for (const [, name, from] of text.matchAll(/export \* (?:as (\w+) )?from '(\.[^']+)'/g)) {
    const file = sourceOf(index, from);
    if (name)
      entries.push({ name, file, comment: `Everything of ${from}`, declaration: exportedNames(file).join('\n') });
    else for (const own of declaredNames(file)) entries.push({ name: own, ...declarationOf(file, own) });
  }
  return entries;
}

function sourceOf(index, from) {
  return join(dirname(index), from.replace(/\.js$/, '.d.ts'));
}

function declaredNames(file) {
  const text = readFileSync(file, 'utf8');
  return [...text.matchAll(new RegExp(`^export (?:declare )?(?:abstract )?(?:${KINDS}) (\\w+)`, 'gm'))].map(
    ([, name]) => name,
  );
}

function exportedNames(file) {
  const text = readFileSync(file, 'utf8');
  const listed = [...text.matchAll(/export (?:type )?\{([^}]*)\}/g)].flatMap(([, names]) => names.split(','));
  const starred = [...text.matchAll(/export \* from '(\.[^']+)'/g)].flatMap(([, from]) =>
    exportedNames(sourceOf(file, from)),
  );
  const names = listed
    .map(name =>
      name
        .trim()
        .replace(/^type /, '')
        .replace(/.* as /, ''),
    )
    .filter(name => name !== '');
  return [...new Set([...names, ...starred, ...declaredNames(file)])].sort((a, b) => (a < b ? -1 : 1));
}

/** The whole declaration, including overloads of a function. */
function declarationOf(file, name) {
  const text = readFileSync(file, 'utf8');
  const start = new RegExp(`^export (?:declare )?(?:abstract )?(?:${KINDS}) ${name}\\b`, 'gm');
  const found = [...text.matchAll(start)];
  if (found.length === 0) {
    const [, from] = new RegExp(`export (?:type )?\\{[^}]*\\b${name}\\b[^}]*\\} from '(\\.[^']+)'`).exec(text) ?? [];
    if (from) return declarationOf(sourceOf(file, from), name);
    throw new Error(`${file} does not declare ${name}`);
  }
  const declaration = found.map(({ index }) =>
    text.slice(index, endOf(text, index)).replace(/^export (declare )?/, ''),
  );
  return { file, comment: commentBefore(text, found[0].index), declaration: declaration.join('\n') };
}

/** Position after the semicolon or brace that ends the declaration at `at`. */
function endOf(text, at) {
  let depth = 0;
  for (let i = at; i < text.length; i++) {
    if (text.startsWith('/*', i)) i = text.indexOf('*/', i) + 1;
    else if ('({['.includes(text[i])) depth++;
    else if (')}]'.includes(text[i])) {
      depth--;
      if (depth === 0 && text[i] === '}' && /^\s*(export|\/\*\*|declare|type|interface|$)/.test(text.slice(i + 1)))
        return i + 1;
    } else if (text[i] === ';' && depth === 0) return i + 1;
  }
  return text.length;
}

function commentBefore(text, at) {
  const [, body = ''] = /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*$/.exec(text.slice(0, at)) ?? [];
  return body
    .split('\n')
    .map(line => line.replace(/^\s*\* ?/, '').trimEnd())
    .join('\n')
    .trim();
}
