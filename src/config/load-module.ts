// A config file that is a module, JavaScript or TypeScript, on every Node that we support: types are stripped by jiti,
// not by Node, whose minimum here cannot. `turbogr` itself can be imported from wherever the file lies.

import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { createJiti } from 'jiti';

/** The default export, or nothing. */
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
