// Loads a config module, JavaScript or TypeScript, on every supported Node: jiti strips the types, since the minimum Node
// version cannot. The module can import `turbogr` from any folder.

import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { createJiti } from 'jiti';

/** The default export, or undefined. */
export async function loadModule(path: string): Promise<unknown> {
  const jiti = createJiti(import.meta.url, {
    alias: { turbogr: createRequire(import.meta.url).resolve('turbogr') },
    nativeModules: ['turbogr'],
    interopDefault: false,
    fsCache: false,
    moduleCache: false,
  });
  const module: { default?: unknown } = await jiti.import(resolve(path));
  return module.default;
}
