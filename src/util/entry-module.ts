// A module beside the caller as another process or thread loads it: compiled, or from source when the caller runs from
// source (tests, `--config x.ts`), so that both sides are always of one version.

import { fileURLToPath } from 'node:url';

export function entryModule(name: string, callerUrl: string): { path: string; execArgv: string[] } {
  const fromSource = callerUrl.endsWith('.ts');
  return {
    path: fileURLToPath(new URL(`./${name}.${fromSource ? 'ts' : 'js'}`, callerUrl)),
    execArgv: fromSource ? ['--import', import.meta.resolve('jiti/register')] : [],
  };
}
