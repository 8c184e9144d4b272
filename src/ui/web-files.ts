// The dashboard's files, built by Vite into `dist/web` and cached in memory (well below a megabyte).

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { UserError } from '../util/errors.js';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

export interface WebFile {
  type: string;
  content: Buffer;
}

const ROOT = fileURLToPath(new URL('../../dist/web', import.meta.url));

/** By URL path. */
export function webFiles(root: string = ROOT): Map<string, WebFile> {
  if (!existsSync(join(root, 'index.html'))) {
    throw new UserError('no-dashboard', `the dashboard is not built: ${root} is missing`, 'Run: npm run build:web');
  }
  const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile());
  return new Map(
    files.map(entry => {
      const path = join(entry.parentPath, entry.name);
      const url = `/${relative(root, path).split(sep).join('/')}`;
      const type = TYPES[extname(path)] ?? 'application/octet-stream';
      return [url === '/index.html' ? '/' : url, { type, content: readFileSync(path) }];
    }),
  );
}
