// Weights packed once for all lanes of a step. A product packs its weight into the form that its tiles read; lanes that follow
// each other without an update between them would pack the same numbers again. Same bits either way.

import type { Device } from '../native/device.js';
import { PANEL, type Tensor } from '../tensor/tensor.js';
import type { Parameter } from './parameter.js';

/** Which pass reads it: forward W[D, N], backward W^T[N, D], both in panels. In the order of the addon's numbers. */
const PASSES = ['forward', 'backward'] as const;
export type Pass = (typeof PASSES)[number];

/** A tensor of a single panel is row-major. */
function fillsPanels(columns: number): boolean {
  return columns > PANEL && columns % PANEL === 0;
}

export function packWeight(device: Device, w: Tensor<'f32'>, pass: Pass): Tensor<'f32'> {
  const to = device.tensor(pass === 'forward' ? [w.rows, w.cols] : [w.cols, w.rows], 'f32', 'panels');
  device.call('pack_weight').tensor(w).number(PASSES.indexOf(pass)).tensor(to).submit();
  return to;
}

/** The packed weights of one step: packed when first asked for, so the weights must not change until it is disposed. */
export class PackedWeights {
  readonly #device: Device;
  readonly #packed: Record<Pass, Map<Parameter, Tensor<'f32'>>> = { forward: new Map(), backward: new Map() };

  constructor(device: Device) {
    this.#device = device;
  }

  /** The weight for a pass; as it is where its columns do not fill panels. */
  of(w: Parameter, pass: Pass): Tensor<'f32'> {
    if (!fillsPanels(pass === 'forward' ? w.value.cols : w.value.rows)) return w.value;
    const known = this.#packed[pass].get(w);
    if (known) return known;
    const made = packWeight(this.#device, w.value, pass);
    this.#packed[pass].set(w, made);
    return made;
  }

  dispose(): void {
    for (const pass of PASSES) {
      for (const tensor of this.#packed[pass].values()) tensor.dispose();
      this.#packed[pass].clear();
    }
  }
}
