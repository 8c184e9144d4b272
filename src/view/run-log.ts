// Aggregates the events of a run as they arrive.

import type {
  BaselinesRanked,
  Checkpointed,
  EpochDone,
  Failed,
  Finished,
  LoggedEvent,
  Resumed,
  RunStarted,
  StepsSampled,
  Validated,
} from '../events/event.js';
import { RankFigures } from './rank-figures.js';
import { StepColumns } from './step-columns.js';

type Logged<E> = E & { time: string };

export class RunLog {
  readonly steps = new StepColumns();
  readonly epochs: Logged<EpochDone>[] = [];
  readonly validations: Logged<Validated>[] = [];
  readonly checkpoints: Logged<Checkpointed>[] = [];
  readonly resumes: Logged<Resumed>[] = [];
  run: Logged<RunStarted> | undefined;
  baselines: Logged<BaselinesRanked> | undefined;
  /** The newest by rank. */
  readonly samples = new Map<number, Logged<StepsSampled>>();
  /** The newest by rank that includes spans. */
  readonly spans = new Map<number, Logged<StepsSampled>>();
  readonly ranks = new RankFigures();
  finished: Logged<Finished> | undefined;
  failed: Logged<Failed> | undefined;
  /** Milliseconds since 1970. */
  firstTime = Number.NaN;
  lastTime = Number.NaN;
  /** Longest time between two events of one process, milliseconds. */
  longestGap = 0;
  /** Seconds spent outside steps. */
  validationSeconds = 0;
  checkpointSeconds = 0;
  damaged = 0;

  add(event: LoggedEvent): void {
    const time = Date.parse(event.time);
    if (Number.isNaN(this.firstTime)) this.firstTime = time;
    else if (event.kind !== 'resumed') this.longestGap = Math.max(this.longestGap, time - this.lastTime);
    this.lastTime = time;
    if (event.kind === 'step') this.steps.add(event);
    else if (event.kind === 'epoch') this.epochs.push(event);
    else if (event.kind === 'run') this.run = event;
    else if (event.kind === 'ranks') this.ranks.add(event);
    else if (event.kind === 'finished') this.finished = event;
    else if (event.kind === 'failed') this.failed = event;
    else if (event.kind === 'sample') {
      this.samples.set(event.rank, event);
      if (event.spans) this.spans.set(event.rank, event);
    } else if (event.kind === 'validation') {
      this.validations.push(event);
      this.validationSeconds += event.seconds;
    } else if (event.kind === 'baselines') {
      this.baselines = event;
      this.validationSeconds += event.seconds;
    } else if (event.kind === 'checkpoint') {
      this.checkpoints.push(event);
      this.checkpointSeconds += event.seconds;
    } else if (event.kind === 'resumed') {
      this.resumes.push(event);
      // It continues: the earlier end is obsolete.
      this.finished = undefined;
      this.failed = undefined;
    }
  }
}
