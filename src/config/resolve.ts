// From what people write to one complete config: recipe, then file, then flags, the later ones winning key by key.
// Everything that can be known to be wrong is refused here, before any long work starts.

import { existsSync, readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { parse as parseYaml } from 'yaml';
import { UserError } from '../util/errors.js';
import { loadModule } from './load-module.js';
import { nearest } from './nearest.js';
import { RECIPES } from './recipes.js';
import { type Config, type ConfigInput, configJsonSchema, configSchema, type ResolvedConfig } from './schema.js';
import { SIZES } from './sizes.js';

type Tree = Record<string, unknown>;

/** What a file or flags say, not yet checked. */
export type UncheckedConfig = Tree;

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

/** The entry of a table of named configs, or nothing when the name is not there. */
function named(table: Readonly<Record<string, Tree>>, name: unknown): Tree | undefined {
  return typeof name === 'string' && Object.hasOwn(table, name) ? table[name] : undefined;
}

/** A complete config from partial ones; the later ones win. Throws a UserError that names key, value and remedy. */
export function resolveConfig(...inputs: (ConfigInput | UncheckedConfig)[]): ResolvedConfig {
  const given = inputs.reduce<Tree>(merge, {});
  const { recipe } = given;
  const base = named(RECIPES, recipe) ?? {};
  if (typeof recipe === 'string' && !Object.hasOwn(RECIPES, recipe)) {
    throw new UserError(
      'unknown-recipe',
      `there is no recipe "${recipe}"`,
      `${nearest(recipe, Object.keys(RECIPES))}The recipes are: ${Object.keys(RECIPES).join(', ')}.`,
    );
  }
  const merged = merge(base, given);
  const size = isTree(merged['model']) ? named(SIZES, merged['model']['size']) : undefined;
  return finish(parseConfig(merge(size ? { model: size } : {}, merged)));
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
  const under = (node: unknown): Tree => (isTree(node) && isTree(node['properties']) ? node['properties'] : {});
  const node = path.reduce<unknown>((at, key) => under(at)[String(key)], configJsonSchema());
  return Object.keys(under(node));
}

/** Lists of touched rows that one update of a table can sum, and how many of them a batch leaves. */
const MOST_LISTS = 8;
const LISTS_OF_SAMPLED_LOSS = 3;

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
  const { table, accumulate } = config.optimizer;
  const most = loss.kind === 'full-softmax' ? MOST_LISTS : Math.floor(MOST_LISTS / LISTS_OF_SAMPLED_LOSS);
  if (table !== 'adamw' && accumulate > most) {
    throw new UserError(
      'bad-value',
      `config: optimizer.accumulate = ${accumulate}, and optimizer.table = "${table}" adds up ${most} batches at most`,
      `Set optimizer.table: adamw, or use larger batches and accumulate at most ${most}.`,
    );
  }
  const width = model.d / model.heads;
  return { ...config, model: { ...model, dqk: model.dqk ?? width, dv: model.dv ?? width } };
}

const TEXTS = ['.yaml', '.yml', '.json'];
const MODULES = ['.ts', '.mts', '.js', '.mjs'];

/** Reads a config file: YAML or JSON, or a module whose default export is the config. */
export async function readConfigFile(path: string): Promise<UncheckedConfig> {
  if (!existsSync(path)) throw new UserError('bad-config-file', `there is no file ${path}`, 'Check the path.');
  const isText = TEXTS.includes(extname(path));
  const config = isText ? readText(path) : await readModule(path);
  if (isTree(config)) return config;
  throw new UserError(
    'bad-config-file',
    `${path} holds no mapping of keys`,
    isText ? 'Write lines such as `epochs: 20`.' : 'Write `export default { epochs: 20 }`.',
  );
}

function readText(path: string): unknown {
  try {
    return parseYaml(readFileSync(path, 'utf8'));
  } catch (cause) {
    const message = `cannot read ${path}: ${describe(cause)}`;
    throw new UserError('bad-config-file', message, 'Check the YAML.', { cause });
  }
}

async function readModule(path: string): Promise<unknown> {
  if (!MODULES.includes(extname(path))) {
    const endings = [...TEXTS, ...MODULES].join(', ');
    throw new UserError(
      'bad-config-file',
      `${path} is no config file by its name`,
      `It must end in one of ${endings}.`,
    );
  }
  try {
    return await loadModule(path);
  } catch (cause) {
    const message = `cannot load ${path}: ${describe(cause)}`;
    throw new UserError('bad-config-file', message, 'Check the code it names.', { cause });
  }
}

/** Without the list of places where Node looked. */
function describe(cause: unknown): string {
  const message = cause instanceof Error ? cause.message : String(cause);
  return message.replace(/\nRequire stack:.*/s, '').trimEnd();
}

/** `model.d=64` and the like from the command line, as a config; values are read as YAML. */
export function parseAssignments(assignments: readonly string[]): UncheckedConfig {
  return assignments.reduce<Tree>((tree, assignment) => {
    const at = assignment.indexOf('=');
    if (at < 1) {
      throw new UserError(
        'bad-flag',
        `--set ${assignment}: no key`,
        'Write --set key=value, such as --set model.d=64.',
      );
    }
    const [first, ...rest] = assignment.slice(0, at).split('.');
    const value = readValue(assignment, at);
    return merge(tree, { [first!]: rest.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) });
  }, {});
}

function readValue(assignment: string, at: number): unknown {
  try {
    return parseYaml(assignment.slice(at + 1));
  } catch (cause) {
    const message = `--set ${assignment}: the value is no YAML`;
    throw new UserError('bad-flag', message, 'Quote it, for example --set "evaluation.cutoffs=[1, 10]".', { cause });
  }
}

/** Gives a config object its type, for a config file in TypeScript. */
export function defineConfig(config: ConfigInput): ConfigInput {
  return config;
}
