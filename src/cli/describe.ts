// Sentences that several commands print.
import type { ModelConfig } from '../config/schema.js';
import type { TrainReport, TrainStart } from '../recipes/train.js';
import { describeEvaluation } from '../eval/report.js';
import { formatCount, formatSeconds } from '../util/terminal.js';

const NAMES = { hstu: 'HSTU', fuxi: 'FuXi-alpha', sasrec: 'SASRec' };

/** 83970048 -> 83.97 M */
export function formatMillions(count: number): string {
  return count < 100_000 ? formatCount(count) : `${(count / 1e6).toFixed(2)} M`;
}

export function describeParameters(model: ModelConfig, blockParameters: number): string {
  const { d, blocks, heads, dqk, dv, maxLength } = model;
  const widths = dqk === dv ? `heads of ${dqk}` : `heads of ${dqk} (query, key) and ${dv} (value)`;
  return `${NAMES[model.kind]}: ${blocks} blocks, width ${d}, ${heads} ${widths}, length ${maxLength}, ${formatMillions(blockParameters)} parameters in the blocks`;
}

export function describeStart(start: TrainStart): string {
  const { config } = start;
  const size = 'tokens' in config.batch ? `${formatCount(config.batch.tokens)} tokens` : `${config.batch.users} users`;
  return [
    `${start.run}: ${formatCount(start.users)} users, ${formatCount(start.items)} items, ` +
      `${formatCount(start.tokensPerEpoch)} tokens an epoch`,
    `${describeParameters(config.model, start.blockParameters)}; positions and other dense ` +
      `${formatMillions(start.denseParameters - start.blockParameters)}, item table ${formatMillions(start.tableParameters)}`,
    `${config.loss.kind}, ${config.optimizer.table} on the table, lr ${config.optimizer.lr}, batches of ${size}, ` +
      `${config.epochs} epochs, about ${formatCount(start.totalSteps)} steps, seed ${config.seed}`,
    ...adviseBatch(start),
  ].join('\n');
}

/** Fewer steps an epoch than this, and a model hardly moves. */
const FEW_STEPS = 10;

function adviseBatch({ config, tokensPerEpoch }: TrainStart): string[] {
  if (!('tokens' in config.batch) || tokensPerEpoch >= FEW_STEPS * config.batch.tokens) return [];
  const better = Math.max(config.model.maxLength, 2 ** Math.round(Math.log2(tokensPerEpoch / (2 * FEW_STEPS))));
  if (better >= config.batch.tokens) return [];
  return [
    `a small log: an epoch is ${Math.ceil(tokensPerEpoch / config.batch.tokens)} steps, and smaller batches would make ` +
      `more of it: --set batch.tokens=${better}`,
  ];
}

export function describeReport(report: TrainReport): string {
  const lines = [`${report.step} steps in ${formatSeconds(report.seconds)}; weights ${report.digest.slice(0, 16)}`];
  if (report.best) {
    const { value, epoch } = report.best;
    const tested = report.test ? '; tested with those weights' : '';
    lines.push(`best validation ${report.metric} ${value.toFixed(4)} after epoch ${epoch + 1}${tested}`);
  }
  if (report.test) lines.push('', describeEvaluation(report.test));
  return lines.join('\n');
}
