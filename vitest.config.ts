import { defineConfig } from 'vitest/config';

// The kernels use both cores of a small machine, so test files run one after the other in processes of their own.
// CI logs may be cut: there, failures and the summary are all that is printed, at the end.
export default defineConfig({
  test: {
    include: ['tests/**/*.test.ts'],
    pool: 'forks',
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 60_000,
    reporters: process.env['CI'] ? ['dot'] : ['default'],
    silent: process.env['CI'] ? 'passed-only' : false,
  },
});
