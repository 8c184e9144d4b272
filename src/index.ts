/**
 * TurboGR as a library: the same jobs as the command line, typed.
 *
 * ```ts
 * import { openRecommender, prepare, train } from 'turbogr';
 *
 * await prepare({ files: ['log.csv'], out: 'store' });
 * const report = await train({ data: 'store', config: { model: { size: 'micro' }, epochs: 10 } });
 * const recommender = openRecommender(report.run);
 * console.log(await recommender.recommend(recommender.historyAt(0), { k: 5 }));
 * recommender.close();
 * ```
 *
 * A custom model is a {@link ModelDefinition} written from the ops; see `examples/`.
 *
 * @packageDocumentation
 */

export { defineConfig, resolveConfig, resolveForLog } from './config/resolve.js';
export type { LogStatistics } from './config/log-statistics.js';
export type { Choice } from './config/rules.js';
export { logStatistics } from './data/log-statistics.js';
export { RECIPES } from './config/recipes.js';
export type { Config, ConfigInput, ModelConfig, ResolvedConfig } from './config/schema.js';
export type { SequenceSource } from './data/sequence-source.js';
export type { PrepareInput, PrepareReport } from './data/prepare/options.js';
export { prepare } from './data/prepare/prepare.js';
export type { ItemFilter } from './data/items/item-filter.js';
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
export type { Interval } from './eval/bootstrap.js';
export type { PairedMetric, PairedReport } from './eval/paired.js';
export type { Segment } from './eval/segments.js';
export { compareRuns, type RunComparison } from './jobs/compare-runs.js';
export { evaluate, type EvaluateOptions } from './jobs/evaluate.js';
export { recommendAll, type RecommendAllOptions, type RecommendAllReport } from './jobs/recommend-all.js';
export { embed, type EmbedOptions } from './jobs/embed.js';
export { type BundleReport, exportBundle } from './jobs/bundle.js';
export { checkOnnx, type OnnxDifference } from './jobs/onnx/check-onnx.js';
export { exportOnnx, type OnnxReport } from './jobs/onnx/export-onnx.js';
export type { Verdict } from './jobs/verdict.js';
export { exportWeights } from './jobs/weights.js';
export { openRecommender, Recommender } from './jobs/recommend.js';
export type {
  HistoryEvent,
  HistoryInput,
  Recommendation,
  RecommendOptions,
  RecommendRequest,
} from './jobs/recommend-request.js';
export { resume, train } from './jobs/train.js';
export type { ModelBuilder, TrainOptions } from './jobs/train-options.js';
export type { TrainReport } from './jobs/train-report.js';
export { refit, type RefitOptions } from './jobs/refit.js';
export { update, type UpdateOptions } from './jobs/update.js';
export { tune, type Trial, type TuneOptions, type TuneReport } from './jobs/tune.js';
export { TurboError } from './tensor/turbo-error.js';
export { UserError } from './util/errors.js';
