// The only error raised by tensors, ops and streams: the op, the input, what was expected and what was found.

/** The fields of a TurboError as data, as passed by the addon. */
export interface NativeFault {
  /**
   * shape, offsets, range, not-finite, timestamp, argument, handle, alias, dtype, op, memory, closed, file; or panic, which is
   * always a bug.
   */
  kind: string;
  op: string;
  input: string;
  expected: string;
  got: string;
}

export class TurboError extends Error implements NativeFault {
  override readonly name = 'TurboError';
  readonly kind: string;
  readonly op: string;
  readonly input: string;
  readonly expected: string;
  readonly got: string;

  constructor(fault: NativeFault) {
    const where = fault.input === '' ? fault.op : `${fault.op}: ${fault.input}`;
    super(`${where}: expected ${fault.expected}, got ${fault.got} [${fault.kind}]`);
    this.kind = fault.kind;
    this.op = fault.op;
    this.input = fault.input;
    this.expected = fault.expected;
    this.got = fault.got;
  }
}
