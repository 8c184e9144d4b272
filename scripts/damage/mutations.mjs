// Seeded damage to the files of a folder, as done by disks, editors or attackers.
import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join, relative } from 'node:path';

/** Random integers below a limit, from a seed (SplitMix32: consecutive seeds give unrelated numbers). */
export function numbers(seed) {
  let state = seed >>> 0;
  return limit => {
    state = (state + 0x9e3779b9) >>> 0;
    let z = state;
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return ((z ^ (z >>> 15)) >>> 0) % limit;
  };
}

/** Values that a damaged or malicious index may contain. */
const HOSTILE = [0, -1, 1, 7, 2 ** 31, 2 ** 32, 2 ** 53, 1e300, -0.5, null, '', '../../x', '/etc/passwd', [], {}, true];

const MUTATIONS = {
  'one bit flipped': (path, below) => editBytes(path, bytes => (bytes[below(bytes.length)] ^= 1 << below(8))),
  'one byte changed': (path, below) => editBytes(path, bytes => (bytes[below(bytes.length)] = below(256))),
  'a header byte changed': (path, below) =>
    editBytes(path, bytes => (bytes[below(Math.min(64, bytes.length))] = below(256))),
  'a range of noise': (path, below) =>
    editBytes(path, bytes => {
      const from = below(bytes.length);
      const to = Math.min(bytes.length, from + 1 + below(200));
      for (let i = from; i < to; i++) bytes[i] = below(256);
    }),
  'a range of zeros': (path, below) => editBytes(path, bytes => bytes.fill(0, below(bytes.length))),
  'cut off': (path, below) => truncateSync(path, below(statSync(path).size + 1)),
  'made longer': (path, below) => appendFileSync(path, Buffer.alloc(1 + below(64), below(256))),
  emptied: path => truncateSync(path, 0),
  removed: path => rmSync(path),
  'a folder in its place': path => replace(path, () => mkdirSync(path)),
  'a pipe in its place': path => replace(path, () => spawnSync('mkfifo', [path])),
  'a link to nowhere in its place': path => replace(path, () => symlinkSync('nowhere', path)),
  'a link to itself in its place': path => replace(path, () => symlinkSync(path, path)),
  'another file in its place': (path, below, files) =>
    writeFileSync(path, readFileSync(files[below(files.length)] ?? path)),
  'swapped with another file': (path, below, files) => {
    const other = files[below(files.length)] ?? path;
    renameSync(path, `${path}.swap`);
    if (other !== path) renameSync(other, path);
    renameSync(`${path}.swap`, other);
  },
  'a value of its JSON changed': changeValue,
  'a key of its JSON removed': removeKey,
};

function editBytes(path, edit) {
  const bytes = readFileSync(path);
  if (bytes.length === 0) return;
  edit(bytes);
  writeFileSync(path, bytes);
}

function replace(path, make) {
  rmSync(path);
  make();
}

/** Every place in a JSON tree, as the object that holds it and its key. */
function placesOf(node) {
  if (typeof node !== 'object' || node === null) return [];
  return Object.keys(node).flatMap(key => [[node, key], ...placesOf(node[key])]);
}

/** JSON and JSON lines; a file of another kind gets a changed byte instead. */
function editJson(path, below, edit) {
  if (!/\.jsonl?$/.test(path)) {
    MUTATIONS['one byte changed'](path, below);
    return;
  }
  const lines = path.endsWith('l') ? readFileSync(path, 'utf8').trimEnd().split('\n') : [readFileSync(path, 'utf8')];
  const at = below(lines.length);
  const tree = JSON.parse(lines[at]);
  const places = placesOf(tree);
  edit(...places[below(places.length)]);
  lines[at] = JSON.stringify(tree);
  writeFileSync(path, `${lines.join('\n')}\n`);
}

function changeValue(path, below) {
  editJson(path, below, (node, key) => {
    const old = node[key];
    const near = typeof old === 'number' ? old + 1 + below(3) : `${typeof old === 'string' ? old : ''}x`;
    node[key] = below(2) === 0 ? near : HOSTILE[below(HOSTILE.length)];
  });
}

function removeKey(path, below) {
  editJson(path, below, (node, key) => {
    if (Array.isArray(node)) node.splice(Number(key), 1);
    else delete node[key];
  });
}

function filesOf(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
    .sort();
}

/** Damages one file of the folder, determined by the seed; returns a description. */
export function damage(folder, seed) {
  const below = numbers(seed);
  const files = filesOf(folder);
  // JSON files are few and short but describe everything else: half of the damage goes to them.
  const indexes = files.filter(file => /\.jsonl?$/.test(file));
  const among = below(2) === 0 ? indexes : files;
  const path = among[below(among.length)];
  const names = Object.keys(MUTATIONS);
  const name = names[below(names.length)];
  MUTATIONS[name](path, below, files);
  return `${relative(folder, path)}: ${name}`;
}
