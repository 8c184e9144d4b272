// Builder of an ONNX graph: every op returns the name of its output, to be used by further ops. Field numbers are those of
// onnx.proto.

import { Message } from './message.js';

/** Opset 17: the newest without axes as inputs, supported by all recent runtimes. */
const OPSET = 17;
const IR_VERSION = 8;

const TYPES = { float: 1, int64: 7, double: 11 } as const;
export type ElementType = keyof typeof TYPES;

/** A value of the graph, by name. */
export type Value = string;
/** Numbers are fixed, names are free. */
export type Dimensions = readonly (number | string)[];
type Attribute = number | readonly number[] | { float: number };

export class Graph {
  readonly #name: string;
  readonly #graph = new Message();
  readonly #constants = new Map<string, Value>();
  #count = 0;

  constructor(name: string) {
    this.#name = name;
    this.#graph.bytes(2, name);
  }

  input(name: string, type: ElementType, dimensions: Dimensions): Value {
    this.#graph.bytes(11, described(name, type, dimensions));
    return name;
  }

  /** Gives a value the name of an output. */
  output(value: Value, name: string, dimensions: Dimensions): void {
    this.#node('Identity', [value], name, {});
    this.#graph.bytes(12, described(name, 'float', dimensions));
  }

  op(type: string, inputs: readonly Value[], attributes: Readonly<Record<string, Attribute>> = {}): Value {
    const name = `${type.toLowerCase()}_${this.#count++}`;
    this.#node(type, inputs, name, attributes);
    return name;
  }

  /** Weights under their own name. */
  weights(name: string, data: Float32Array, shape: readonly number[]): Value {
    this.#graph.bytes(5, tensor(name, 'float', { shape, data }));
    return name;
  }

  floats(values: readonly number[], shape: readonly number[] = [values.length]): Value {
    return this.#constant('float', Float32Array.from(values), shape);
  }

  float(value: number): Value {
    return this.floats([value], []);
  }

  double(value: number): Value {
    return this.#constant('double', Float64Array.of(value), []);
  }

  ints(values: readonly number[] | Int32Array, shape: readonly number[] = [values.length]): Value {
    return this.#constant('int64', BigInt64Array.from(Array.from(values, BigInt)), shape);
  }

  int(value: number): Value {
    return this.ints([value], []);
  }

  /** Columns [from, from + count) of a matrix. */
  columns(value: Value, from: number, count: number): Value {
    return this.op('Slice', [value, this.ints([from]), this.ints([from + count]), this.ints([1])]);
  }

  cast(value: Value, type: ElementType): Value {
    return this.op('Cast', [value], { to: TYPES[type] });
  }

  /** The whole model. */
  model(metadata: Readonly<Record<string, string>>): Message {
    const model = new Message()
      .integer(1, IR_VERSION)
      .bytes(2, 'turbogr')
      .bytes(7, this.#graph)
      .bytes(8, new Message().bytes(1, '').integer(2, OPSET));
    for (const [key, value] of Object.entries(metadata)) {
      model.bytes(14, new Message().bytes(1, key).bytes(2, value));
    }
    return model;
  }

  /** Equal small constants are stored once. */
  #constant(type: ElementType, data: Float32Array | Float64Array | BigInt64Array, shape: readonly number[]): Value {
    const key = data.length > 16 ? undefined : `${type} ${shape.join('x')} ${data.join(' ')}`;
    const known = key === undefined ? undefined : this.#constants.get(key);
    if (known !== undefined) return known;
    const name = `${this.#name}_constant_${this.#count++}`;
    this.#graph.bytes(5, tensor(name, type, { shape, data }));
    if (key !== undefined) this.#constants.set(key, name);
    return name;
  }

  #node(type: string, inputs: readonly Value[], output: Value, attributes: Readonly<Record<string, Attribute>>): void {
    const node = new Message();
    for (const input of inputs) node.bytes(1, input);
    node.bytes(2, output).bytes(3, output).bytes(4, type);
    for (const [name, value] of Object.entries(attributes)) node.bytes(5, attribute(name, value));
    this.#graph.bytes(1, node);
  }
}

function attribute(name: string, value: Attribute): Message {
  const message = new Message().bytes(1, name);
  if (typeof value === 'number') return message.integer(3, value).integer(20, 2);
  if ('float' in value) return message.float(2, value.float).integer(20, 1);
  for (const number of value) message.integer(8, number);
  return message.integer(20, 7);
}

function tensor(
  name: string,
  type: ElementType,
  { shape, data }: { shape: readonly number[]; data: ArrayBufferView },
): Message {
  const message = new Message();
  for (const size of shape) message.integer(1, size);
  return message.integer(2, TYPES[type]).bytes(8, name).bytes(9, data);
}

function described(name: string, type: ElementType, dimensions: Dimensions): Message {
  const shape = new Message();
  for (const size of dimensions) {
    const dimension = new Message();
    shape.bytes(1, typeof size === 'number' ? dimension.integer(1, size) : dimension.bytes(2, size));
  }
  const tensorType = new Message().integer(1, TYPES[type]).bytes(2, shape);
  return new Message().bytes(1, name).bytes(2, new Message().bytes(1, tensorType));
}
