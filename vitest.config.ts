import { defineConfig } from 'vitest/config';

// The kernels use both cores of a small machine, so test files run one after the other in processes of their own.
export default defineConfig({
  test: {
    include: ['tests/**/*.test.ts'],
    pool: 'forks',
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 60_000,
  },
});
