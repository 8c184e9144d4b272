// Resolves user input to a complete config: recipe, then file, then flags; later ones win key by key. Invalid input is
// refused here, before any long work starts.

import { existsSync, readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { parse as parseYaml } from 'yaml';
import { UserError } from '../util/errors.js';
import { loadModule } from './load-module.js';
import { nearest } from './nearest.js';
import type { LogStatistics } from './log-statistics.js';
import { RECIPES, RENAMED_RECIPES } from './recipes.js';
import { type Choice, chooseSettings } from './rules.js';
import { type Config, type ConfigInput, configJsonSchema, configSchema, type ResolvedConfig } from './schema.js';
import { SIZES } from './sizes.js';

type Tree = Record<string, unknown>;

/** The content of a file or of flags, not yet validated. */
export type UncheckedConfig = Tree;

function isTree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The default batch size applies even if only `lanes` is given. */
const DEFAULT_BATCH: Tree = { batch: { tokens: 8192 } };

/** Later trees win key by key. A batch is sized by `tokens` or `users`, so the later one replaces the other. */
function merge(base: Tree, over: Tree): Tree {
  const merged = { ...base };
  for (const [key, value] of Object.entries(over)) {
    const known = merged[key];
    if (!isTree(known) || !isTree(value)) merged[key] = value;
    else merged[key] = merge(key === 'batch' ? withoutOtherSize(known, value) : known, value);
  }
  return merged;
}

function withoutOtherSize({ tokens, users, ...rest }: Tree, over: Tree): Tree {
  if ('tokens' in over || 'users' in over) return rest;
  return { ...rest, ...(tokens !== undefined && { tokens }), ...(users !== undefined && { users }) };
}

/** Merges partial configs without validation; later ones win. */
export function mergeConfigs(...inputs: (ConfigInput | UncheckedConfig)[]): UncheckedConfig {
  return inputs.reduce<Tree>(merge, {});
}

/** The named config, or undefined. */
function named(table: Readonly<Record<string, Tree>>, name: unknown): Tree | undefined {
  return typeof name === 'string' && Object.hasOwn(table, name) ? table[name] : undefined;
}

/** The input on top of its recipe and named size. */
function expand(inputs: readonly (ConfigInput | UncheckedConfig)[]): Tree {
  const given = mergeConfigs(...inputs);
  const { recipe } = given;
  const base = named(RECIPES, recipe) ?? {};
  if (typeof recipe === 'string' && !Object.hasOwn(RECIPES, recipe)) {
    const now = RENAMED_RECIPES[recipe];
    throw new UserError(
      'unknown-recipe',
      `there is no recipe "${recipe}"`,
      now !== undefined
        ? `It is \`${now}\` now, with the settings of the paper; \`npx turbogr config --recipe ${now}\` shows them.`
        : `${nearest(recipe, Object.keys(RECIPES))}The recipes are: ${Object.keys(RECIPES).join(', ')}.`,
    );
  }
  const merged = merge(base, given);
  const size = isTree(merged['model']) ? named(SIZES, merged['model']['size']) : undefined;
  return merge(size ? { model: size } : {}, merged);
}

/** A complete config from partial ones; later ones win. Throws a UserError that names key, value and remedy. */
export function resolveConfig(...inputs: (ConfigInput | UncheckedConfig)[]): ResolvedConfig {
  return finish(parseConfig(expand(inputs)));
}

/** The same for a log: keys that are not given are chosen by the rules, unless a recipe is named. */
export function resolveForLog(
  log: LogStatistics,
  ...inputs: (ConfigInput | UncheckedConfig)[]
): { config: ResolvedConfig; choices: Choice[] } {
  const tree = expand(inputs);
  const complete = parseConfig(tree);
  if (complete.recipe !== undefined) return { config: finish(complete), choices: [] };
  const choices = chooseSettings(log, complete, key => valueAt(tree, key.split('.')) !== undefined);
  const chosen = choices.reduce<Tree>((all, { key, value }) => merge(all, nest(key.split('.'), value)), {});
  return { config: finish(parseConfig(merge(chosen, tree))), choices };
}

function valueAt(tree: Tree, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, key) => (isTree(inner) ? inner[key] : undefined), tree);
}

/** ['model', 'd'] and 64 -> { model: { d: 64 } } */
function nest(path: readonly string[], value: unknown): Tree {
  const [first = '', ...rest] = path;
  return { [first]: rest.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) };
}

function parseConfig(tree: Tree): Config {
  const result = configSchema.safeParse(merge(DEFAULT_BATCH, tree));
  if (result.success) return result.data;
  const issue = result.error.issues[0]!;
  const path = issue.path.join('.');
  if (issue.code === 'unrecognized_keys') {
    const key = issue.keys[0]!;
    if (path === 'optimizer' && key === 'accumulate') {
      throw new UserError(
        'unknown-key',
        'config: optimizer.accumulate is now batch.lanes',
        'Write `batch: { tokens: 8192, lanes: 4 }`, with your own numbers.',
      );
    }
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
    `${issue.message}. \`npx turbogr config --schema\` describes every key.`,
  );
}

/** Keys the schema allows under a path, read from its JSON Schema so that there is no second list. */
function keysAt(path: readonly PropertyKey[]): string[] {
  const under = (node: unknown): Tree => (isTree(node) && isTree(node['properties']) ? node['properties'] : {});
  const node = path.reduce<unknown>((at, key) => under(at)[String(key)], configJsonSchema());
  return Object.keys(under(node));
}

function checkNegatives({ kind, shares, pool, count, sharing }: Config['loss']['negatives']): void {
  const refuse = (message: string, remedy: string): never => {
    throw new UserError('bad-value', `config: ${message}`, remedy);
  };
  if (kind === 'mixed' && shares.uniform + shares.popularity + shares.inBatch === 0)
    refuse('loss.negatives.shares are all 0', 'Give one of them a positive share.');
  if (kind === 'mixed' && pool > 0)
    refuse(
      `loss.negatives.pool = ${pool} with loss.negatives.kind = mixed`,
      'Draw the pool by one kind, or leave the pool out.',
    );
  if (pool > 0 && count >= pool && sharing.factor > 1)
    refuse(
      `loss.negatives.sharing.factor = ${sharing.factor}, but every token uses all ${pool} rows of the pool`,
      'Lower loss.negatives.count below the pool, or leave sharing out.',
    );
}

function checkSmoothing({ kind, smoothing }: Config['loss']): void {
  if (!smoothing || kind === 'full-softmax') return;
  throw new UserError(
    'bad-value',
    `config: loss.smoothing = ${smoothing} with loss.kind = ${kind}, which does not compute all items`,
    'Set loss.kind: full-softmax, or leave loss.smoothing out.',
  );
}

function checkTables({ optimizer: { table, tableStorage, ema } }: Config): void {
  if (tableStorage === 'f32') return;
  const refuse = (other: string, remedy: string): never => {
    throw new UserError('bad-value', `config: optimizer.tableStorage = ${tableStorage} with ${other}`, remedy);
  };
  if (table === 'adamw') refuse('optimizer.table = adamw, which is f32', 'Set optimizer.table: row-adagrad.');
  if (ema !== undefined) refuse(`optimizer.ema = ${ema}, which is f32`, 'Leave optimizer.ema out.');
}

/** Rows can be fetched ahead only if a step reads and changes a subset of them. */
function checkStaleness({ staleness, loss, optimizer }: Config): void {
  if (staleness === 0) return;
  const against =
    loss.kind === 'full-softmax'
      ? 'loss.kind = full-softmax, which reads every row in every step'
      : optimizer.table === 'adamw'
        ? 'optimizer.table = adamw, which changes every row in every step'
        : optimizer.tableStorage !== 'f32' && `optimizer.tableStorage = ${optimizer.tableStorage}`;
  if (!against) return;
  throw new UserError(
    'bad-value',
    `config: staleness = ${staleness} with ${against}`,
    'Leave staleness at 0, or use a sampled loss, optimizer.table = lazy-adam or row-adagrad, and rows in f32.',
  );
}

/** `wire` applies only if a step fetches rows, and rows are rounded only once. */
function checkWire({ wire, loss, optimizer: { tableStorage } }: Config): void {
  if (wire === 'f32') return;
  const against =
    loss.kind === 'full-softmax'
      ? 'loss.kind = full-softmax, which fetches no rows'
      : tableStorage !== 'f32' && `optimizer.tableStorage = ${tableStorage}, whose rows have 16 bits already`;
  if (!against) return;
  throw new UserError('bad-value', `config: wire = ${wire} with ${against}`, 'Leave wire at f32.');
}

/** Derived values and rules that span several keys. */
function finish(config: Config): ResolvedConfig {
  const { model } = config;
  if ((model.dqk === undefined || model.dv === undefined) && model.d % model.heads !== 0) {
    throw new UserError(
      'bad-value',
      `config: model.d = ${model.d} is not divisible by model.heads = ${model.heads}`,
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
  checkNegatives(config.loss.negatives);
  checkSmoothing(config.loss);
  checkTables(config);
  checkStaleness(config);
  checkWire(config);
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
    `${path} is not a mapping of keys`,
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
      `${path} does not have the extension of a config file`,
      `It must end in one of ${endings}.`,
    );
  }
  try {
    return await loadModule(path);
  } catch (cause) {
    const message = `cannot load ${path}: ${describe(cause)}`;
    throw new UserError('bad-config-file', message, 'Check the code in it.', { cause });
  }
}

/** Without the list of paths that Node searched. */
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
    return merge(tree, nest(assignment.slice(0, at).split('.'), readValue(assignment, at)));
  }, {});
}

function readValue(assignment: string, at: number): unknown {
  try {
    return parseYaml(assignment.slice(at + 1));
  } catch (cause) {
    const message = `--set ${assignment}: the value is not valid YAML`;
    throw new UserError('bad-flag', message, 'Quote it, for example --set "evaluation.cutoffs=[1, 10]".', { cause });
  }
}

/** Types a config object, for config files in TypeScript. */
export function defineConfig(config: ConfigInput): ConfigInput {
  return config;
}
