// A portable model: weights, config, vocabulary and metadata in one folder, independent of log and store.
//
//   bundle.json              config, shapes, checksums of the files, and a checksum of itself
//   weights.safetensors      as `turbogr export --out` writes them
//   items.safetensors        the vocabulary of the store
//   features.safetensors     side features of the items, if the model has any

import { copyFileSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { resolveConfig } from '../config/resolve.js';
import type { ResolvedConfig } from '../config/schema.js';
import { TIME_KIND, VOCABULARY } from '../data/store/store-index.js';
import { Vocabulary } from '../data/store/vocabulary.js';
import { Device } from '../native/device.js';
import { buildDefinition } from '../nn/build.js';
import { Model } from '../nn/model.js';
import type { SideFeature } from '../nn/model-shape.js';
import { makeFolder, syncFolder, claimTemporary, writeFileAtomic } from '../util/atomic-file.js';
import { UserError } from '../util/errors.js';
import { canonicalJson, sha256, sha256File } from '../util/hash.js';
import { isRegularFile, readTextFile } from '../util/regular-file.js';
import { SafetensorsFile, writeSafetensors } from '../util/safetensors.js';
import type { Catalogue } from './catalogue.js';
import { OpenRun, type OpenRunOptions } from './open-run.js';
import { writeWeights } from './weights.js';

const BUNDLE = z.strictObject({
  format: z.literal('turbogr-bundle'),
  version: z.literal(1),
  config: z.record(z.string(), z.unknown()),
  /** SHA-256 of the weights, as the run's report has it. */
  digest: z.string(),
  fingerprint: z.string(),
  items: z.int().positive(),
  actions: z.int().nonnegative(),
  /** Units of the timestamps per day; null if there are none. */
  ticksPerDay: z.number().nullable(),
  timeKind: TIME_KIND,
  longestGap: z.number(),
  vocabulary: VOCABULARY,
  sideFeatures: z.array(z.strictObject({ name: z.string(), rows: z.int() })),
  /** SHA-256 by file. */
  files: z.record(z.string().regex(/^[\w-]+\.safetensors$/), z.string()),
  /** SHA-256 of all of the above. */
  checksum: z.string(),
});
type Bundle = z.infer<typeof BUNDLE>;

const INDEX = 'bundle.json';

export function isBundle(path: string): boolean {
  return existsSync(join(path, INDEX));
}

export interface BundleReport {
  folder: string;
  /** Whether the run uses priors of the log, which a bundle lacks: it ranks by the model alone. */
  withoutPriors: boolean;
}

/** Writes the bundle of a run atomically. Refuses an existing folder. */
export async function exportBundle(run: string, out: string, options: OpenRunOptions = {}): Promise<BundleReport> {
  const folder = resolve(out);
  if (existsSync(folder) && readdirSync(folder).length > 0) {
    throw new UserError('out-exists', `${out} exists and is not empty`, 'Choose another folder for --bundle.');
  }
  using opened = new OpenRun(run, { ...options, coldItems: 'from-labels' });
  if (opened.kind !== opened.config.model.kind) {
    const message = `a bundle cannot hold the code of a custom model, "${opened.kind}"`;
    throw new UserError('own-model', message, 'Export the weights alone: --out <file>.');
  }
  await opened.source.verify(); // otherwise a damaged vocabulary would get a valid checksum
  makeFolder(dirname(folder));
  const temp = claimTemporary(folder);
  rmSync(temp, { recursive: true, force: true });
  mkdirSync(temp);
  try {
    await fill(temp, opened);
    renameSync(temp, folder);
  } catch (error) {
    rmSync(temp, { recursive: true, force: true });
    throw error;
  }
  syncFolder(dirname(folder));
  return { folder: out, withoutPriors: opened.priors !== undefined };
}

async function fill(folder: string, { model, config, source, catalogue }: OpenRun): Promise<void> {
  const { actions, items, sideFeatures } = model.shape;
  await writeWeights(model, join(folder, 'weights.safetensors'));
  const { vocabulary } = source.index;
  copyFileSync(join(source.folder, vocabulary.item.file), join(folder, 'items.safetensors'));
  if (sideFeatures.length > 0) {
    const columns = sideFeatures.map(({ name, ofItem }) => [
      name,
      { dtype: 'I32' as const, shape: [ofItem.length], data: ofItem },
    ]);
    writeSafetensors(join(folder, 'features.safetensors'), Object.fromEntries(columns));
  }
  const names = readdirSync(folder).sort();
  const content: Omit<Bundle, 'checksum'> = {
    format: 'turbogr-bundle',
    version: 1,
    config,
    digest: await model.digest(),
    fingerprint: source.fingerprint,
    items,
    actions,
    ticksPerDay: source.ticksPerDay ?? null,
    timeKind: catalogue.timeKind,
    longestGap: catalogue.longestGap,
    vocabulary: { ...vocabulary.item, file: 'items.safetensors' },
    sideFeatures: sideFeatures.map(({ name, rows }) => ({ name, rows })),
    files: Object.fromEntries(names.map(name => [name, sha256File(join(folder, name))])),
  };
  const whole = { ...content, checksum: checksumOf(content) };
  writeFileAtomic(join(folder, INDEX), `${JSON.stringify(whole, null, 2)}\n`);
}

function checksumOf(content: Omit<Bundle, 'checksum'>): string {
  return sha256(canonicalJson(content));
}

/** An opened bundle, for recommending: like OpenRun, but without a log. */
export class OpenBundle {
  readonly config: ResolvedConfig;
  readonly device: Device;
  readonly model: Model;
  readonly catalogue: Catalogue;
  readonly source = undefined;
  readonly priors = undefined;

  constructor(folder: string, options: Pick<OpenRunOptions, 'threads'> = {}) {
    const bundle = readBundle(folder);
    this.config = resolveConfig(bundle.config);
    const { timeKind, longestGap, ticksPerDay, items, actions } = bundle;
    this.catalogue = { vocabulary: new Vocabulary(folder, bundle.vocabulary), timeKind, longestGap };
    const threads = options.threads ?? this.config.threads;
    this.device = Device.open(threads === undefined ? {} : { threads });
    try {
      const { model } = this.config;
      const shape = {
        definition: buildDefinition(model, ticksPerDay ?? undefined),
        items,
        positions: model.maxLength + model.outputSlots,
        dropout: model.dropout,
        actions,
        sideFeatures: readSideFeatures(folder, bundle),
        scoring: this.config.loss,
      };
      this.model = new Model(this.device, shape, this.config.seed);
      this.model.loadAndClose(new SafetensorsFile(join(folder, 'weights.safetensors')));
    } catch (error) {
      this.device.dispose();
      throw error;
    }
  }

  [Symbol.dispose](): void {
    this.device.dispose();
  }
}

function readSideFeatures(folder: string, { sideFeatures }: Bundle): SideFeature[] {
  if (sideFeatures.length === 0) return [];
  const file = new SafetensorsFile(join(folder, 'features.safetensors'));
  try {
    return sideFeatures.map(({ name, rows }) => ({ name, rows, ofItem: file.read(name, 'I32') }));
  } finally {
    file.close();
  }
}

/** All bytes of a bundle are verified on opening: it is small and comes from elsewhere. */
function readBundle(folder: string): Bundle {
  const refuse = (what: string, cause?: unknown) =>
    new UserError('damaged-bundle', `${folder}: ${what}`, 'Copy it again, or export the run again.', { cause });
  let bundle: Bundle;
  try {
    bundle = BUNDLE.parse(JSON.parse(readTextFile(join(folder, INDEX)) ?? ''));
  } catch (cause) {
    throw refuse(`${INDEX} is not a bundle index`, cause);
  }
  const { checksum, ...content } = bundle;
  if (checksumOf(content) !== checksum) throw refuse(`${INDEX} does not match its checksum`);
  for (const [name, hash] of Object.entries(bundle.files)) {
    const file = join(folder, name);
    if (!isRegularFile(file)) throw refuse(`${name} is missing or not a regular file`);
    if (sha256File(file) !== hash) throw refuse(`${name} does not match its checksum: damaged or truncated`);
  }
  return bundle;
}
