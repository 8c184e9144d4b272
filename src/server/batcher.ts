// Batches concurrent requests: requests that arrive while a batch is computed form the next one, so a single request does not
// wait and many share one pass. The queue is bounded: requests that do not fit are refused at once, and expired ones are not
// computed.

export interface BatcherOptions {
  /** Maximum requests per batch. */
  maxBatch: number;
  /** Maximum sum of `size` per batch; a single request may exceed it. */
  maxSize: number;
  /** Maximum waiting requests. */
  maxQueue: number;
  /** Called with the size of every batch. */
  onBatch?: (requests: number) => void;
}

/** The queue is full. */
export class Overloaded extends Error {}
/** The request waited too long. */
export class Expired extends Error {}

interface Waiting<Request, Answer> {
  request: Request;
  size: number;
  deadline: number;
  done: (answer: Answer) => void;
  fail: (error: unknown) => void;
}

export class Batcher<Request, Answer> {
  readonly #compute: (requests: Request[]) => Promise<Answer[]>;
  readonly #options: BatcherOptions;
  #queue: Waiting<Request, Answer>[] = [];
  #running: Promise<void> | undefined;

  constructor(compute: (requests: Request[]) => Promise<Answer[]>, options: BatcherOptions) {
    this.#compute = compute;
    this.#options = options;
  }

  get waiting(): number {
    return this.#queue.length;
  }

  /** `deadline` is in the clock of `performance.now()`. */
  submit(request: Request, { size, deadline }: { size: number; deadline: number }): Promise<Answer> {
    if (this.#queue.length >= this.#options.maxQueue) return Promise.reject(new Overloaded('the queue is full'));
    return new Promise<Answer>((done, fail) => {
      this.#queue.push({ request, size, deadline, done, fail });
      this.#running ??= this.#work();
    });
  }

  /** Waits until nothing is queued or computed. */
  async drain(): Promise<void> {
    while (this.#running) await this.#running;
  }

  async #work(): Promise<void> {
    // Requests that arrive in the same event loop iteration share the first batch.
    await new Promise(resolve => setImmediate(resolve));
    let batch = this.#begin();
    while (batch) {
      const deliver = await batch;
      // The next batch starts before the answers of this one are sent.
      batch = this.#begin();
      deliver();
    }
    this.#running = undefined;
  }

  /** Starts the next batch, if any; resolves to a function that delivers the answers. */
  #begin(): Promise<() => void> | undefined {
    while (this.#queue.length > 0) {
      const batch = this.#take();
      if (batch.length > 0) return this.#answer(batch);
    }
    return undefined;
  }

  #take(): Waiting<Request, Answer>[] {
    const batch: Waiting<Request, Answer>[] = [];
    const now = performance.now();
    let size = 0;
    let taken = 0;
    for (const waiting of this.#queue) {
      const fits =
        batch.length === 0 || (batch.length < this.#options.maxBatch && size + waiting.size <= this.#options.maxSize);
      if (!fits) break;
      taken++;
      if (waiting.deadline < now) {
        waiting.fail(new Expired('the request waited too long'));
      } else {
        batch.push(waiting);
        size += waiting.size;
      }
    }
    this.#queue = this.#queue.slice(taken);
    return batch;
  }

  async #answer(batch: Waiting<Request, Answer>[]): Promise<() => void> {
    this.#options.onBatch?.(batch.length);
    try {
      const answers = await this.#compute(batch.map(({ request }) => request));
      return () => batch.forEach(({ done }, i) => done(answers[i]!));
    } catch (error) {
      // One request must not fail the others: retried alone, each gets its own answer or error.
      if (batch.length === 1) return () => batch[0]!.fail(error);
      const alone: (() => void)[] = [];
      for (const waiting of batch) alone.push(await this.#answer([waiting]));
      return () => alone.forEach(deliver => deliver());
    }
  }
}
