/**
 * TurboGR as a library: the same jobs as the command line, typed.
 *
 * ```ts
 * import { openRecommender, prepare, train } from 'turbogr';
 *
 * await prepare({ files: ['log.csv'], out: 'store' });
 * const report = await train({ data: 'store', config: { model: { size: 'small' }, epochs: 10 } });
 * using recommender = openRecommender(report.run);
 * console.log(await recommender.recommend(['item-7', 'item-12'], { k: 5 }));
 * ```
 *
 * A model of one's own is a {@link ModelDefinition} written from the ops; see `examples/`.
 *
 * @packageDocumentation
 */

export { defineConfig, resolveConfig } from './config/resolve.js';
export { RECIPES } from './config/recipes.js';
export type { Config, ConfigInput, ModelConfig, ResolvedConfig } from './config/schema.js';
export type { SequenceSource } from './data/sequence-source.js';
export type { PrepareInput, PrepareReport } from './data/prepare/options.js';
export { prepare } from './data/prepare/prepare.js';
export { SequenceStore } from './data/store/sequence-store.js';
export { type SynthOptions, type SynthReport, synthesize } from './data/synth/synthesize.js';
export type { Estimate, Metrics } from './eval/metrics.js';
export type { EvaluationReport } from './eval/report.js';
export type { LoggedEvent, RunEvent } from './events/event.js';
export { readEvents } from './train/event-log.js';
export { Device, type DeviceOptions } from './native/device.js';
export type { ForwardInput, ModelDefinition, Weights } from './nn/definition.js';
export * from './nn/parameter-spec.js';
export * as ops from './ops/index.js';
export { evaluate, type EvaluateOptions } from './recipes/evaluate.js';
export { exportWeights } from './recipes/weights.js';
export {
  type HistoryEvent,
  openRecommender,
  type Recommendation,
  type RecommendOptions,
  Recommender,
} from './recipes/recommend.js';
export { type ModelBuilder, resume, train, type TrainOptions, type TrainReport } from './recipes/train.js';
export { TurboError } from './tensor/turbo-error.js';
export { UserError } from './util/errors.js';
