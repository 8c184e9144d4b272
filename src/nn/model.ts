// A model with its weights, in three parts: input embedding, encoder (the definition's blocks) and scorer. Used for training,
// evaluation and serving; saved and loaded by parameter name.
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
import type { Shape, Tensor } from '../tensor/tensor.js';
import { UserError } from '../util/errors.js';
import { ownedRows, type RowShard, WHOLE } from '../util/row-shard.js';
import type { TensorFile } from '../util/tensor-file.js';
import { BatchTensors } from './batch-tensors.js';
import type { ModelDefinition, Weights } from './definition.js';
import { initialize } from './initialize.js';
import { InputEmbedding, type ItemLookup } from './input-embedding.js';
import type { ModelShape } from './model-shape.js';
import { countParameters, matrix, type ParameterSpec, truncNormal, xavierNormal } from './parameter-spec.js';
import { Scorer } from './scorer.js';

/** A tensor of the model, with its name in files. */
export interface NamedWeight {
  readonly name: string;
  /** All of its rows, or those of a shard. */
  readonly value: Tensor<RowDtype>;
  /** Shape of the whole tensor. */
  readonly shape: Shape;
  readonly shard: RowShard;
}

/** A weight to be written to a file; `read` returns the rows of the shard. */
export interface StoredWeight {
  readonly name: string;
  readonly dtype: 'F32';
  readonly shape: Shape;
  readonly shard: RowShard;
  readonly read: () => AsyncIterable<Float32Array>;
}

export class Model {
  readonly device: Device;
  readonly shape: ModelShape;
  /** The item table first, then those of actions and side features. */
  readonly tables: readonly Table[];
  /** Dense parameters, positions first. */
  readonly parameters: readonly Parameter[];
  /** Specs of the dense parameters, in the same order. */
  readonly specs: readonly ParameterSpec[];
  /** All weights: tables, then dense parameters. */
  readonly all: readonly NamedWeight[];
  /** Maps ids to vectors. */
  readonly embedding: InputEmbedding;
  /** Scores states against items. */
  readonly scorer: Scorer;
  readonly #byName: ReadonlyMap<string, Parameter>;

  /** With random weights, determined by the seed. `itemShard`: the rows of the item table to keep. */
  constructor(device: Device, shape: ModelShape, seed: number, itemShard: RowShard = WHOLE) {
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
      const shard = i === 0 ? itemShard : WHOLE;
      const size = [ownedRows(spec.rows, shard), spec.cols] as const;
      const value = mappedIn === undefined ? device.tensor(size, dtype) : device.mappedTensor(size, dtype, mappedIn);
      initialize(device, value, spec.init, { seed, step: 0, purpose: i, shard });
      return new Table(device, spec.name, value, { mappedIn, vocabulary: spec.rows, shard });
    });
    this.parameters = this.specs.map((spec, i) => {
      const value = device.tensor([spec.rows, spec.cols]);
      initialize(device, value, spec.init, { seed, step: 0, purpose: tableSpecs.length + i });
      return new Parameter(device, spec.name, value);
    });
    this.all = [
      ...this.tables.map(({ name, value, vocabulary, shard }) => ({
        name,
        value,
        shape: [vocabulary, value.cols] as const,
        shard,
      })),
      ...this.parameters.map(({ name, value }) => ({ name, value, shape: value.shape, shard: WHOLE })),
    ];
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

  /** Numbers of parameters: in the blocks, all dense, and in tables. */
  get counts(): { blockParameters: number; denseParameters: number; tableParameters: number } {
    return {
      blockParameters: countParameters(this.definition.parameters),
      denseParameters: countParameters(this.specs),
      tableParameters: this.tables.reduce((sum, { vocabulary, value }) => sum + vocabulary * value.cols, 0),
    };
  }

  readonly weights: Weights = name => {
    const parameter = this.#byName.get(name);
    if (parameter) return parameter;
    throw new Error(`the model has no parameter "${name}"; it has ${[...this.#byName.keys()].join(', ')}`);
  };

  /**
   * [T, D] states of a batch; each row predicts the next event. `items`: the source of the item rows; default: the table.
   */
  encode(tape: Tape, batch: BatchTensors, items?: ItemLookup): Tensor<'f32'> {
    const x = this.embedding.forward(tape, batch, items);
    return this.definition.forward({ tape, x, tokens: batch.tokens, weights: this.weights });
  }

  /** Uploads what this model needs of a batch. The caller disposes of it. */
  upload(input: JaggedBatch, stream?: StreamName): BatchTensors {
    return new BatchTensors(this.device, input, this.shape, stream);
  }

  /** The weights by name, for checkpoints and export, all as f32; each is read in pieces when it is written. */
  stored(): StoredWeight[] {
    return this.all.map(({ name, value, shape, shard }) => ({
      name,
      dtype: 'F32',
      shape,
      shard,
      read: () => readRows(this.device, value),
    }));
  }

  /** Overwrites the weights with those of a file; mismatched names or shapes are refused before any is changed. */
  load(file: TensorFile): void {
    for (const { name, shape: whole } of this.all) {
      const shape = file.tensors.get(name)?.shape;
      if (shape?.[0] === whole[0] && shape[1] === whole[1]) continue;
      throw new UserError(
        'weights-mismatch',
        `${file.path}: "${name}" is ${shape ? `[${shape.join(', ')}]` : 'missing'}, the model has [${whole.join(', ')}]`,
        'Load weights of the same architecture, sizes and catalogue.',
      );
    }
    for (const { name, value, shard } of this.all) {
      writeRows(this.device, value, (start, into) => file.readRows(name, shard, start, into));
    }
  }

  loadAndClose(file: TensorFile): void {
    try {
      this.load(file);
    } finally {
      file.close();
    }
  }

  /** SHA-256 over names, shapes and bytes of all weights. `whole` reads a sharded one in row order. */
  async digest(whole?: (weight: NamedWeight) => AsyncIterable<NodeJS.ArrayBufferView>): Promise<string> {
    const hash = createHash('sha256');
    for (const weight of this.all) {
      hash.update(`${weight.name} ${weight.shape.join('x')}\n`);
      const pieces = weight.shard.count === 1 ? readRows(this.device, weight.value) : whole!(weight);
      for await (const piece of pieces) hash.update(piece);
    }
    return hash.digest('hex');
  }

  dispose(): void {
    for (const owner of [...this.tables, ...this.parameters]) owner.dispose();
  }
}
