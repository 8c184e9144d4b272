// Named sizes: width, depth, heads and length together. `large` and `long` are the paper's (16 blocks of width 1024;
// heads are ours, since attention costs the same for any number of them). An explicit key wins over its size.

import type { ConfigInput } from './schema.js';

type ModelInput = NonNullable<ConfigInput['model']>;

export const SIZES: Record<NonNullable<ModelInput['size']>, ModelInput> = {
  tiny: { d: 32, blocks: 2, heads: 1, maxLength: 64 },
  small: { d: 64, blocks: 2, heads: 2, maxLength: 200 },
  medium: { d: 256, blocks: 4, heads: 4, maxLength: 1024 },
  large: { d: 1024, blocks: 16, heads: 8, maxLength: 2048, outputSlots: 0 },
  long: { d: 1024, blocks: 16, heads: 8, maxLength: 4096, outputSlots: 0 },
};
