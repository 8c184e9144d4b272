// A trained run, opened for use: its data, a device, and the model with the run's chosen weights.

import { Device } from '../native/device.js';
import { Model } from '../nn/model.js';
import type { PriorWeights } from '../config/prior-weights.js';
import type { ResolvedConfig } from '../config/schema.js';
import { SequenceStore } from '../data/store/sequence-store.js';
import { openChosenWeights } from '../train/chosen-weights.js';
import { RunFolder } from '../train/run-folder.js';
import { UserError } from '../util/errors.js';
import { SafetensorsFile } from '../util/safetensors.js';
import type { Catalogue } from './catalogue.js';
import { withColdItems } from './cold-items.js';
import { longestGap } from './moment.js';
import { readRunPriors } from './priors.js';
import { shapeModel } from './shape-model.js';
import type { ModelBuilder } from './train-options.js';

export interface OpenRunOptions {
  threads?: number;
  /** The run's custom model, if it was trained with one. */
  model?: ModelBuilder;
  /** A safetensors file with other weights, such as ones edited or averaged elsewhere. */
  weights?: string;
  /** The run's sequence store, if it was moved. */
  store?: string;
}

/** Rows of items without events: derived from items that share their labels, for answers, or as trained. */
export type ColdItems = 'from-labels' | 'as-trained';

export class OpenRun {
  /** Kind of the model: one of the config's, or the name that a custom model gives itself. */
  readonly kind: string;
  readonly config: ResolvedConfig;
  readonly source: SequenceStore;
  readonly device: Device;
  readonly model: Model;
  /** Weights of the log's priors; the model alone when absent. */
  readonly priors: PriorWeights | undefined;

  constructor(path: string, options: OpenRunOptions & { coldItems?: ColdItems } = {}) {
    const run = RunFolder.open(path);
    this.kind = run.description.model;
    this.config = run.description.config;
    this.priors = readRunPriors(run);
    this.source = openStore(run, options.store);
    requireBuilder(run, options.model);
    const threads = options.threads ?? this.config.threads;
    this.device = Device.open(threads === undefined ? {} : { threads });
    try {
      this.model = new Model(this.device, shapeModel(this.config, this.source, options.model), this.config.seed);
      const weights = options.weights === undefined ? openChosenWeights(run) : new SafetensorsFile(options.weights);
      const cold = options.coldItems ?? 'as-trained';
      this.model.loadAndClose(cold === 'as-trained' ? weights : withColdItems(weights, this.source));
    } catch (error) {
      this.device.dispose();
      throw error;
    }
  }

  get catalogue(): Catalogue {
    const { source } = this;
    return {
      vocabulary: source.itemVocabulary,
      timeKind: source.index.time.kind,
      get longestGap() {
        return longestGap(source);
      },
    };
  }

  [Symbol.dispose](): void {
    this.device.dispose();
  }
}

/** The store of a run, at its recorded path or at `moved`; any other store is refused. */
export function openStore(run: RunFolder, moved?: string): SequenceStore {
  const { store: place, fingerprint, content } = run.description;
  const folder = moved ?? run.find(place);
  let store: SequenceStore;
  try {
    store = SequenceStore.open(folder);
  } catch (error) {
    if (!(error instanceof UserError) || error.code !== 'not-a-store') throw error;
    const message = `the sequence store of ${run.path} is not at ${folder}`;
    throw new UserError('no-store', message, 'Give its current path: --store <folder>.', { cause: error });
  }
  if (store.fingerprint === fingerprint && store.content === content) return store;
  throw new UserError(
    'other-data',
    `${folder} holds other data than ${run.path} began with (${store.content.slice(0, 12)}, expected ${content.slice(0, 12)})`,
    'Give the store that the run was trained on with --store, or train a new run.',
  );
}

/** A run of a custom model cannot be rebuilt from its config alone. */
export function requireBuilder(run: RunFolder, build: ModelBuilder | undefined): void {
  const { model, config } = run.description;
  if (build || model === config.model.kind) return;
  throw new UserError(
    'own-model',
    `${run.path} was trained with a custom model, "${model}", which is code and not in the run`,
    'Use it from code: openRecommender(run, { model }), evaluate(run, { model }) or resume(run, { model }).',
  );
}
