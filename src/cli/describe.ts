// Texts shared by several commands.
import type { ModelConfig } from '../config/schema.js';
import type { TrainReport, TrainStart } from '../jobs/train-report.js';
import { describeEvaluation } from '../eval/report.js';
import { fetchesBeside, leastHiddenSegment } from '../negatives/segment-size.js';
import type { Verdict } from '../jobs/verdict.js';
import { coloured, formatCount, formatCounted, formatSeconds, formatShare } from '../util/terminal.js';
import { printable } from '../util/text-width.js';

const NAMES = { hstu: 'HSTU', fuxi: 'FuXi-alpha', sasrec: 'SASRec' };

/** 83970048 -> 83.97 M */
export function formatMillions(count: number): string {
  return count < 100_000 ? formatCount(count) : `${(count / 1e6).toFixed(2)} M`;
}

export function describeParameters(model: ModelConfig, blockParameters: number, kind: string = model.kind): string {
  const { d, blocks, heads, dqk, dv, maxLength } = model;
  const count = `${formatMillions(blockParameters)} parameters in the blocks`;
  if (kind !== model.kind) return `${kind}: length ${maxLength}, ${count}`; // the shape of a custom model is unknown
  const widths = dqk === dv ? `${dqk}` : `${dqk} (query, key) and ${dv} (value)`;
  return (
    `${NAMES[model.kind]}: ${formatCounted(blocks, 'block')}, width ${d}, ${formatCounted(heads, 'head')} of ${widths}, ` +
    `length ${maxLength}, ${count}`
  );
}

export function describeStart(start: TrainStart): string {
  const { config } = start;
  const size = 'tokens' in config.batch ? `${formatCount(config.batch.tokens)} tokens` : `${config.batch.users} users`;
  return [
    `${start.run}: ${formatCount(start.users)} users, ${formatCount(start.items)} items, ` +
      `${formatCount(start.tokensPerEpoch)} tokens per epoch`,
    ...describeLeftOut(start),
    `${describeParameters(config.model, start.blockParameters, start.model)}; positions and other dense ` +
      `${formatMillions(start.denseParameters - start.blockParameters)}, item table ${formatMillions(start.tableParameters)}`,
    `${config.loss.kind}, ${config.optimizer.table} on the table, lr ${config.optimizer.lr}, batches of ${size}, ` +
      `${formatCounted(config.epochs, 'epoch')}, about ${formatCounted(start.totalSteps, 'step')}, seed ${config.seed}`,
    ...describeChoices(start),
    ...adviseBatch(start),
    ...adviseSegment(start),
  ].join('\n');
}

function describeChoices({ choices }: TrainStart): string[] {
  const fromLog = choices.filter(({ measured }) => !measured).map(({ key, value }) => `${key} ${value}`);
  return [
    ...(fromLog.length > 0 ? [`chosen from the log: ${fromLog.join(', ')}`] : []),
    ...choices.filter(({ measured }) => measured).map(c => `chosen by measuring: ${c.key} ${c.value}; ${c.reason}`),
  ];
}

/** What the model will not see, and the option that changes it. */
function describeLeftOut({ prepared, untrainedEvents, trainingEvents, config }: TrainStart): string[] {
  const lines: string[] = [];
  if (prepared) {
    const { guessed, notes, filters, rejects } = prepared;
    const columns = Object.entries(prepared.columns).map(
      ([role, name]) => `${role} = ${printable(name)}${guessed.includes(role) ? ' (guessed)' : ''}`,
    );
    lines.push(`columns: ${columns.join(', ')}; --user, --item, --time, --action name others`, ...notes.map(printable));
    const { rows, share, reasons } = prepared.bad;
    if (rows > 0) {
      const why = Object.entries(reasons).map(([reason, count]) => `${formatCount(count)} ${reason}`);
      lines.push(
        `bad rows left out: ${formatCount(rows)} (${formatShare(share)}): ${printable(why.join(', '))}; all in ${rejects}`,
      );
    }
    for (const { name, removed } of filters) {
      lines.push(`filter ${printable(name)}: ${formatCount(removed)} events left out`);
    }
  }
  if (untrainedEvents > 0) {
    const share = formatShare(untrainedEvents / trainingEvents, 1);
    lines.push(
      `never trained on: ${formatCount(untrainedEvents)} of ${formatCount(trainingEvents)} training events (${share}), older than a user's ` +
        `newest ${formatCount(config.model.maxLength + 1)}; --set window=sliding trains on all`,
    );
  }
  return lines;
}

/** With fewer steps per epoch than this a model hardly changes. */
const FEW_STEPS = 10;

function adviseBatch({ config, tokensPerEpoch }: TrainStart): string[] {
  if (!('tokens' in config.batch) || tokensPerEpoch >= FEW_STEPS * config.batch.tokens) return [];
  const better = Math.max(config.model.maxLength, 2 ** Math.round(Math.log2(tokensPerEpoch / (2 * FEW_STEPS))));
  if (better >= config.batch.tokens) return [];
  return [
    `a small log: an epoch is ${formatCounted(Math.ceil(tokensPerEpoch / config.batch.tokens), 'step')}; more steps with smaller batches may ` +
      `learn more: --set batch.tokens=${better}`,
  ];
}

/** Warns about segments so small that the loss waits for most of them. */
function adviseSegment({ config: { batch, loss, model }, items }: TrainStart): string[] {
  const { count, pool, segment, sharing } = loss.negatives;
  const isWhole = loss.kind === 'full-softmax' || (pool > 0 && count >= pool);
  if (isWhole || segment === 0 || !fetchesBeside(loss.negatives, { rows: items, width: model.d })) return [];
  const tokens = 'tokens' in batch ? batch.tokens : batch.users * model.maxLength;
  const positions = Math.ceil(tokens / sharing.factor);
  const least = leastHiddenSegment({ positions, draws: count * sharing.factor, rows: items });
  if (segment >= least) return [];
  return [
    `segments of ${formatCount(segment)} positions: two of ${Math.ceil(positions / segment)} are fetched while the encoder runs, and the loss ` +
      `waits for the others; --set loss.negatives.segment=${least} hides all of them`,
  ];
}

export function describeReport(report: TrainReport): string {
  const lines = [
    `${formatCounted(report.step, 'step')} in ${formatSeconds(report.seconds)}; weights ${report.digest.slice(0, 16)}`,
  ];
  if (report.best) {
    const { value, epoch } = report.best;
    const tested = report.test ? '; tested with those weights' : '';
    lines.push(`best ${report.chosenOn} ${report.metric} ${value.toFixed(4)} after epoch ${epoch + 1}${tested}`);
  }
  if (report.shares) {
    const { computing, exposed, waiting, free } = report.shares;
    const [first, ...rest] = [computing, exposed, waiting, free].map(share => formatShare(share, 1));
    lines.push(`steps: ${first} computing, ${rest[0]} exposed communication, ${rest[1]} waiting, ${rest[2]} free`);
  }
  if (report.stillImproving) lines.push('validation was still improving at the end: more epochs may help');
  if (report.chosenOn === 'test')
    lines.push('the epoch was chosen on the test events: the figures below are not held out');
  if (report.test) lines.push('', describeEvaluation(report.test));
  if (report.verdict) lines.push('', describeVerdict(report.verdict));
  return lines.join('\n');
}

/** The closing lines of a command: what the result means, and what to do next. */
export function describeVerdict({ kind, lines, next }: Verdict): string {
  const colour = kind === 'ahead' ? 'green' : 'yellow';
  const sentences = lines.map(line => coloured(`${line[0]!.toUpperCase()}${line.slice(1)}.`, colour));
  return [...sentences, `${coloured('Next:', 'bold')} ${next}`].join('\n');
}
