// Named sizes: width, depth, heads and length together. `tiny` to `long` are the TurboGR paper's; `nano`, `micro` and
// `mini` are ours, for small logs and laptops. An explicit key wins over its size.

import type { ModelInput } from './schema.js';

export const SIZES: Record<NonNullable<ModelInput['size']>, ModelInput> = {
  nano: { d: 32, blocks: 2, heads: 1, maxLength: 64 },
  micro: { d: 64, blocks: 2, heads: 2, maxLength: 200 },
  mini: { d: 256, blocks: 4, heads: 4, maxLength: 1024 },
  tiny: { d: 128, blocks: 2, heads: 8, maxLength: 2048, outputSlots: 0 },
  small: { d: 256, blocks: 4, heads: 8, maxLength: 2048, outputSlots: 0 },
  medium: { d: 512, blocks: 8, heads: 8, maxLength: 2048, outputSlots: 0 },
  large: { d: 1024, blocks: 16, heads: 8, maxLength: 2048, outputSlots: 0 },
  long: { d: 1024, blocks: 16, heads: 8, maxLength: 4096, outputSlots: 0 },
};
