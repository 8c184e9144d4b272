// Adds optional binaries of other platforms that this registry did not offer to package-lock.json. `npm install` omits such packages,
// and `npm ci` then refuses the lock file. Run by `npm run lock`, after a dependency has changed.
import { readFileSync, writeFileSync } from 'node:fs';

const SYSTEMS = ['android', 'darwin', 'freebsd', 'openharmony', 'win32', 'linux'];
const PROCESSORS = ['arm64', 'x64', 'ia32', 'ppc64', 'riscv64', 's390x', 'wasm32', 'arm'];

const path = new URL('../package-lock.json', import.meta.url);
const lock = JSON.parse(readFileSync(path, 'utf8'));
const { '': root, ...packages } = lock.packages;

for (const owner of Object.values({ ...packages })) {
  for (const [name, version] of Object.entries(owner.optionalDependencies ?? {})) {
    const target = name.split('/').at(-1);
    const cpu = PROCESSORS.find(word => target.includes(word));
    const os = cpu === 'wasm32' ? undefined : SYSTEMS.find(word => target.includes(word));
    // Binaries are pinned exactly and named after their platform; anything else is an ordinary package.
    if (packages[`node_modules/${name}`] || !cpu || !/^\d/.test(version)) continue;
    packages[`node_modules/${name}`] = {
      version,
      cpu: [cpu],
      ...(owner.dev && { dev: true }),
      ...(os === 'linux' && { libc: [target.includes('musl') ? 'musl' : 'glibc'] }),
      optional: true,
      ...(os && { os: [os] }),
    };
  }
}

const sorted = Object.fromEntries(Object.entries(packages).sort(([a], [b]) => (a < b ? -1 : 1)));
lock.packages = { '': root, ...sorted };
writeFileSync(path, `${JSON.stringify(lock, null, 2)}\n`);
