// A model with its weights, in three parts: the embedding of the input, the encoder (the definition's blocks) and the
// scorer. The same class trains, evaluates and serves; it is saved and loaded by the names of its parameters.
//
// T tokens, V items, D model width, N longest sequence + output slots.

import { createHash } from 'node:crypto';
import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import { readRows, writeRows } from '../ops/copy-rows.js';
import { Parameter } from '../ops/parameter.js';
import type { RowDtype } from '../ops/row-source.js';
import { Table } from '../ops/table.js';
import type { Tape } from '../ops/tape.js';
import type { JaggedBatch } from '../tensor/jagged.js';
import type { Tensor } from '../tensor/tensor.js';
import { UserError } from '../util/errors.js';
import type { SafetensorsFile } from '../util/safetensors.js';
import { BatchTensors } from './batch-tensors.js';
import type { ModelDefinition, Weights } from './definition.js';
import { initialize } from './initialize.js';
import { InputEmbedding, type ItemLookup } from './input-embedding.js';
import type { ModelShape } from './model-shape.js';
import { countParameters, matrix, type ParameterSpec, truncNormal, xavierNormal } from './parameter-spec.js';
import { Scorer } from './scorer.js';

/** A tensor of the model, by the name it has in files. */
export interface NamedWeight {
  readonly name: string;
  readonly value: Tensor<RowDtype>;
}

export class Model {
  readonly device: Device;
  readonly shape: ModelShape;
  /** The item table first, then those of actions and side features. */
  readonly tables: readonly Table[];
  /** Dense parameters, positions first. */
  readonly parameters: readonly Parameter[];
  /** Of the dense parameters, in their order. */
  readonly specs: readonly ParameterSpec[];
  /** All weights: tables, then dense parameters. */
  readonly all: readonly NamedWeight[];
  /** Ids to vectors. */
  readonly embedding: InputEmbedding;
  /** States against items. */
  readonly scorer: Scorer;
  readonly #byName: ReadonlyMap<string, Parameter>;

  /** With random weights: the same seed gives the same ones. */
  constructor(device: Device, shape: ModelShape, seed: number) {
    this.device = device;
    this.shape = shape;
    const { d } = shape.definition;
    const tableSpecs = [
      matrix('items', [shape.items, d], truncNormal(0.02)),
      ...(shape.actions > 0 ? [matrix('actions', [shape.actions, d], truncNormal(0.02))] : []),
      ...shape.sideFeatures.map(({ name, rows }) => matrix(`features.${name}`, [rows, d], truncNormal(0.02))),
    ];
    this.specs = [
      matrix('positions', [shape.positions, d], xavierNormal(shape.positions, d)),
      ...shape.definition.parameters,
    ];
    this.tables = tableSpecs.map((spec, i) => {
      const { dtype, mappedIn } = (i === 0 ? shape.itemStorage : undefined) ?? { dtype: 'f32' };
      const size = [spec.rows, spec.cols] as const;
      const value = mappedIn === undefined ? device.tensor(size, dtype) : device.mappedTensor(size, dtype, mappedIn);
      initialize(device, value, spec.init, { seed, step: 0, purpose: i });
      return new Table(device, spec.name, value, mappedIn);
    });
    this.parameters = this.specs.map((spec, i) => {
      const value = device.tensor([spec.rows, spec.cols]);
      initialize(device, value, spec.init, { seed, step: 0, purpose: tableSpecs.length + i });
      return new Parameter(device, spec.name, value);
    });
    this.all = [...this.tables, ...this.parameters];
    this.#byName = new Map(this.parameters.map(parameter => [parameter.name, parameter]));
    const [items, ...sides] = this.tables;
    const [positions] = this.parameters;
    this.embedding = new InputEmbedding({ items: items!, sides, positions: positions!, dropout: shape.dropout });
    this.scorer = new Scorer(items!, shape.scoring);
  }

  get items(): Table {
    return this.tables[0]!;
  }

  get definition(): ModelDefinition {
    return this.shape.definition;
  }

  /** Parameters of the blocks, all dense ones, and all rows of tables. */
  get counts(): { blockParameters: number; denseParameters: number; tableParameters: number } {
    return {
      blockParameters: countParameters(this.definition.parameters),
      denseParameters: countParameters(this.specs),
      tableParameters: this.tables.reduce((sum, table) => sum + table.value.size, 0),
    };
  }

  readonly weights: Weights = name => {
    const parameter = this.#byName.get(name);
    if (parameter) return parameter;
    throw new Error(`the model has no parameter "${name}"; it has ${[...this.#byName.keys()].join(', ')}`);
  };

  /**
   * [T, D] states of a batch; the row of an event predicts the one after it. `items`: where the batch's items are read,
   * by default in the table.
   */
  encode(tape: Tape, batch: BatchTensors, items?: ItemLookup): Tensor<'f32'> {
    const x = this.embedding.forward(tape, batch, items);
    return this.definition.forward({ tape, x, tokens: batch.tokens, weights: this.weights });
  }

  /** A batch on the device, with what this model needs of it. The caller disposes of it. */
  upload(input: JaggedBatch, stream?: StreamName): BatchTensors {
    return new BatchTensors(this.device, input, this.shape, stream);
  }

  /** The weights by name, for checkpoints and export, all as f32; each is read in pieces when its turn comes. */
  stored(): { name: string; dtype: 'F32'; shape: readonly number[]; read: () => AsyncIterable<Float32Array> }[] {
    return this.all.map(({ name, value }) => ({
      name,
      dtype: 'F32',
      shape: value.shape,
      read: () => readRows(this.device, value),
    }));
  }

  /** Overwrites the weights with those of a file; a name or shape that does not fit is refused before any is touched. */
  load(file: SafetensorsFile): void {
    for (const { name, value } of this.all) {
      const shape = file.tensors.get(name)?.shape;
      if (shape?.[0] === value.rows && shape[1] === value.cols) continue;
      throw new UserError(
        'weights-mismatch',
        `${file.path}: "${name}" is ${shape ? `[${shape.join(', ')}]` : 'missing'}, the model has [${value.shape.join(', ')}]`,
        'Load weights of the same architecture, sizes and catalogue.',
      );
    }
    for (const { name, value } of this.all) {
      writeRows(this.device, value, (start, into) => file.readInto(name, 'F32', start, into));
    }
  }

  loadAndClose(file: SafetensorsFile): void {
    try {
      this.load(file);
    } finally {
      file.close();
    }
  }

  /** SHA-256 over names, shapes and bytes of all weights. */
  async digest(): Promise<string> {
    const hash = createHash('sha256');
    for (const { name, shape, read } of this.stored()) {
      hash.update(`${name} ${shape.join('x')}\n`);
      for await (const piece of read()) hash.update(piece);
    }
    return hash.digest('hex');
  }

  dispose(): void {
    for (const owner of [...this.tables, ...this.parameters]) owner.dispose();
  }
}
