// The built-in models by their names in a config.

import type { ModelConfig } from '../config/schema.js';
import type { ModelDefinition } from './definition.js';
import { fuxi } from './fuxi.js';
import { hstu } from './hstu.js';
import { sasrec } from './sasrec.js';
import { sasrecMeta } from './sasrec-meta.js';
import { timeBias } from './time-bias.js';

const MODELS = {
  hstu,
  fuxi,
  sasrec: (config: ModelConfig) => (config.variant === 'meta' ? sasrecMeta(config) : sasrec(config)),
};

/** `ticksPerDay`: units of the timestamps per day; undefined if batches have no times. */
export function buildDefinition(config: ModelConfig, ticksPerDay: number | undefined): ModelDefinition {
  return MODELS[config.kind](config, timeBias(config, ticksPerDay));
}
