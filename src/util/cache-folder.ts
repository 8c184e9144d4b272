// The folder for reproducible artefacts: the MPI shim, measured costs of this machine.

import { homedir } from 'node:os';
import { join } from 'node:path';

export function cacheFolder(env: NodeJS.ProcessEnv = process.env): string {
  const base = env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  return env['TURBOGR_CACHE'] ?? join(base, 'turbogr');
}
