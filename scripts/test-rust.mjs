// Formatting, lints and tests of the Rust workspace, cheapest first.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const cwd = fileURLToPath(new URL('..', import.meta.url));
const steps = [
  ['fmt', '--all', '--check'],
  ['clippy', '--locked', '--quiet', '--workspace', '--all-targets', '--', '-D', 'warnings'],
  ['test', '--locked', '--quiet', '-p', 'turbogr-kernels', '--lib'],
];

for (const step of steps) {
  // rustfmt and clippy are rustup components that a system cargo may lack; tests are never skipped.
  if (step[0] !== 'test' && spawnSync('cargo', [step[0], '--version'], { cwd }).status !== 0) {
    console.log(`skipped: cargo ${step[0]} is not installed`);
    continue;
  }
  const { status } = spawnSync('cargo', step, { cwd, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
