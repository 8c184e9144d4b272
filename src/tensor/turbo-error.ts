// The one error that tensors, ops and streams raise: which op, which of its inputs, what was expected, what was found.

/** The fields of a TurboError as data, which is how they cross from the addon. */
export interface Refusal {
  /**
   * shape, offsets, range, not-finite, timestamp, argument, handle, dtype, op, closed, file; or panic, which is a bug
   * of ours.
   */
  kind: string;
  op: string;
  input: string;
  expected: string;
  got: string;
}

export class TurboError extends Error implements Refusal {
  override readonly name = 'TurboError';
  readonly kind: string;
  readonly op: string;
  readonly input: string;
  readonly expected: string;
  readonly got: string;

  constructor(refusal: Refusal) {
    const where = refusal.input === '' ? refusal.op : `${refusal.op}: ${refusal.input}`;
    super(`${where}: expected ${refusal.expected}, got ${refusal.got} [${refusal.kind}]`);
    this.kind = refusal.kind;
    this.op = refusal.op;
    this.input = refusal.input;
    this.expected = refusal.expected;
    this.got = refusal.got;
  }
}
