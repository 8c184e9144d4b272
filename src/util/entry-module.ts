// Path of a module next to the caller, for another process or thread to load: compiled, or from source if the caller runs
// from source (tests, `--config x.ts`), so that both sides always have the same version.

import { fileURLToPath } from 'node:url';

export function entryModule(name: string, callerUrl: string): { path: string; execArgv: string[] } {
  const fromSource = callerUrl.endsWith('.ts');
  return {
    path: fileURLToPath(new URL(`./${name}.${fromSource ? 'ts' : 'js'}`, callerUrl)),
    execArgv: fromSource ? ['--import', import.meta.resolve('jiti/register')] : [],
  };
}
