// The built-in models by their names in a config.

import type { ModelConfig } from '../config/schema.js';
import type { ModelDefinition } from './definition.js';
import { fuxi } from './fuxi.js';
import { hstu } from './hstu.js';
import { sasrec } from './sasrec.js';

/** `hasTime`: batches carry times, and the config wants their bias. */
export function buildDefinition(config: ModelConfig, hasTime: boolean): ModelDefinition {
  const timed = hasTime && config.timeBias === 'auto';
  switch (config.kind) {
    case 'hstu':
      return hstu(config, timed);
    case 'fuxi':
      return fuxi(config, timed);
    case 'sasrec':
      return sasrec(config);
  }
}
