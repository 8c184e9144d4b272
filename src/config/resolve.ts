// From what people write to one complete config: recipe, then file, then flags, the later ones winning key by key.
// Everything that can be known to be wrong is refused here, before any long work starts.

import { readFileSync } from 'node:fs';
import { extname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parse as parseYaml } from 'yaml';
import { z } from 'zod';
import { UserError } from '../util/errors.js';
import { nearest } from './nearest.js';
import { RECIPES } from './recipes.js';
import { type Config, type ConfigInput, configSchema, type ResolvedConfig } from './schema.js';
import { SIZES, type SizeName } from './sizes.js';

type Tree = { [key: string]: unknown };

function isTree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Later trees win key by key. `batch` is one choice of two shapes, so it is replaced whole. */
function merge(base: Tree, over: Tree): Tree {
  const merged = { ...base };
  for (const [key, value] of Object.entries(over)) {
    const known = merged[key];
    merged[key] = isTree(known) && isTree(value) && key !== 'batch' ? merge(known, value) : value;
  }
  return merged;
}

/** A complete config from partial ones; the later ones win. Throws a UserError that names key, value and remedy. */
export function resolveConfig(...inputs: ConfigInput[]): ResolvedConfig {
  const given = (inputs as Tree[]).reduce(merge, {});
  const recipe = given['recipe'];
  if (recipe !== undefined && !(String(recipe) in RECIPES)) {
    throw new UserError(
      'unknown-recipe',
      `there is no recipe "${String(recipe)}"`,
      `${nearest(String(recipe), Object.keys(RECIPES))}The recipes are: ${Object.keys(RECIPES).join(', ')}.`,
    );
  }
  const base = recipe === undefined ? {} : (RECIPES[String(recipe)] as Tree);
  const merged = merge(base, given);
  const model = isTree(merged['model']) ? merged['model'] : {};
  const size = isTree(given['model']) ? (given['model']['size'] ?? model['size']) : model['size'];
  const sized = typeof size === 'string' && size in SIZES ? { model: SIZES[size as SizeName] as Tree } : {};
  return finish(parseConfig(merge(sized, merged)));
}

function parseConfig(tree: Tree): Config {
  const result = configSchema.safeParse(tree);
  if (result.success) return result.data;
  const issue = result.error.issues[0]!;
  const path = issue.path.join('.');
  if (issue.code === 'unrecognized_keys') {
    const key = issue.keys[0]!;
    const allowed = keysAt(issue.path);
    throw new UserError(
      'unknown-key',
      `config: unknown key "${path === '' ? key : `${path}.${key}`}"`,
      `${nearest(key, allowed)}The keys here are: ${allowed.join(', ')}.`,
    );
  }
  const value = issue.path.reduce<unknown>((at, key) => (isTree(at) ? at[String(key)] : undefined), tree);
  throw new UserError(
    'bad-value',
    `config: ${path} is ${JSON.stringify(value)}`,
    `${issue.message}. \`turbogr config --schema\` describes every key.`,
  );
}

/** Keys the schema allows under a path, read from its JSON Schema so that there is no second list. */
function keysAt(path: readonly PropertyKey[]): string[] {
  let node = z.toJSONSchema(configSchema, { io: 'input' }) as Tree;
  for (const key of path) node = (node['properties'] as Tree)[String(key)] as Tree;
  return Object.keys((node['properties'] ?? {}) as Tree);
}

/** Derived values and rules that span several keys. */
function finish(config: Config): ResolvedConfig {
  const { model, loss } = config;
  if ((model.dqk === undefined || model.dv === undefined) && model.d % model.heads !== 0) {
    throw new UserError(
      'bad-value',
      `config: model.d = ${model.d} does not divide by model.heads = ${model.heads}`,
      'Choose a number of heads that divides d, or give model.dqk and model.dv.',
    );
  }
  if ('tokens' in config.batch && config.batch.tokens < model.maxLength) {
    throw new UserError(
      'bad-value',
      `config: batch.tokens = ${config.batch.tokens} cannot hold one sequence of model.maxLength = ${model.maxLength}`,
      `Raise batch.tokens to at least ${model.maxLength}, or lower model.maxLength.`,
    );
  }
  if (config.optimizer.table !== 'adamw' && (loss.kind === 'full-softmax' || config.optimizer.accumulate > 2)) {
    const cause = loss.kind === 'full-softmax' ? 'loss.kind = "full-softmax"' : 'optimizer.accumulate above 2';
    throw new UserError(
      'bad-value',
      `config: ${cause} gives every row of the table a gradient, and optimizer.table = "${config.optimizer.table}" works row by row`,
      'Set optimizer.table: adamw, or change the other of the two.',
    );
  }
  const width = model.d / model.heads;
  return { ...config, model: { ...model, dqk: model.dqk ?? width, dv: model.dv ?? width } };
}

/** Reads a config file: YAML or JSON, or a module whose default export is the config. */
export async function readConfigFile(path: string): Promise<ConfigInput> {
  const kind = extname(path);
  if (kind === '.yaml' || kind === '.yml' || kind === '.json') {
    const tree: unknown = parseText(path);
    if (isTree(tree)) return tree as ConfigInput;
    throw new UserError('bad-config-file', `${path} holds no mapping of keys`, 'Write lines such as `epochs: 20`.');
  }
  try {
    const module = (await import(pathToFileURL(resolve(path)).href)) as { default?: unknown };
    if (isTree(module.default)) return module.default as ConfigInput;
  } catch (cause) {
    const remedy =
      kind === '.ts'
        ? `Node ${process.versions.node} may be too old to read TypeScript (22.18 reads it); use YAML or a compiled .js.`
        : 'Give a .yaml, .json, .js or .ts file.';
    throw new UserError('bad-config-file', `cannot load ${path}: ${(cause as Error).message}`, remedy, { cause });
  }
  throw new UserError('bad-config-file', `${path} has no default export`, 'Write `export default { epochs: 20 }`.');
}

function parseText(path: string): unknown {
  try {
    return parseYaml(readFileSync(path, 'utf8'));
  } catch (cause) {
    const remedy = 'Check the path and the YAML.';
    throw new UserError('bad-config-file', `cannot read ${path}: ${(cause as Error).message}`, remedy, { cause });
  }
}

/** `model.d=64` and the like from the command line, as a config; values are read as YAML. */
export function parseAssignments(assignments: readonly string[]): ConfigInput {
  return assignments.reduce<Tree>((tree, assignment) => {
    const at = assignment.indexOf('=');
    if (at < 1) {
      throw new UserError(
        'bad-flag',
        `--set ${assignment}: no key`,
        'Write --set key=value, such as --set model.d=64.',
      );
    }
    const value: unknown = parseYaml(assignment.slice(at + 1));
    const keys = assignment.slice(0, at).split('.');
    return merge(tree, keys.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as Tree);
  }, {}) as ConfigInput;
}

/** Gives a config object its type, for a config file in TypeScript. */
export function defineConfig(config: ConfigInput): ConfigInput {
  return config;
}
