// The built-in models by their names in a config.

import type { ModelConfig } from '../config/schema.js';
import type { ModelDefinition } from './definition.js';
import { fuxi } from './fuxi.js';
import { hstu } from './hstu.js';
import { sasrec } from './sasrec.js';

const MODELS = { hstu, fuxi, sasrec };

/** `hasTime`: batches carry times, and the config wants their bias. */
export function buildDefinition(config: ModelConfig, hasTime: boolean): ModelDefinition {
  return MODELS[config.kind](config, hasTime && config.timeBias === 'auto');
}
