// Specifications of a model's parameters before any memory is allocated: name, shape, initialisation. Enough to count
// parameters and to print a model.

export type Init =
  | { kind: 'normal'; std: number }
  /** Normal, truncated at two standard deviations. */
  | { kind: 'trunc-normal'; std: number }
  /** Uniform in ±bound. */
  | { kind: 'uniform'; bound: number }
  | { kind: 'constant'; value: number }
  /** Given values, row-major. */
  | { kind: 'values'; values: readonly number[] };

export interface ParameterSpec {
  /** Readable and unique: the tensor's name in exported weights. */
  readonly name: string;
  readonly rows: number;
  readonly cols: number;
  readonly init: Init;
  /** Whether weight decay applies: to matrices, but not to biases, gains and bias tables. */
  readonly decay: boolean;
}

export const normal = (std: number): Init => ({ kind: 'normal', std });
export const truncNormal = (std: number): Init => ({ kind: 'trunc-normal', std });
export const values = (...numbers: number[]): Init => ({ kind: 'values', values: numbers });
export const constant = (value: number): Init => ({ kind: 'constant', value });
export const uniform = (bound: number): Init => ({ kind: 'uniform', bound });
export const xavierUniform = (rows: number, cols: number): Init => uniform(Math.sqrt(6 / (rows + cols)));
export const xavierNormal = (rows: number, cols: number): Init => normal(Math.sqrt(2 / (rows + cols)));

/** A matrix. */
export function matrix(name: string, shape: [rows: number, cols: number], init: Init): ParameterSpec {
  return { name, rows: shape[0], cols: shape[1], init, decay: true };
}

/** A row vector. */
export function vector(name: string, cols: number, init: Init): ParameterSpec {
  return { name, rows: 1, cols, init, decay: false };
}

export function countParameters(specs: readonly ParameterSpec[]): number {
  return specs.reduce((sum, spec) => sum + spec.rows * spec.cols, 0);
}
