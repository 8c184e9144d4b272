// A local npm registry that serves a few tarballs and forwards other requests to the real one, to try `npm install turbogr` before
// anything is published. For tests and scripts/try-install.mjs.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { basename } from 'node:path';

/** @returns {Promise<{ url: string, close: () => void }>} */
export async function serveRegistry(tarballs, upstream) {
  const packages = new Map(tarballs.map(path => describe(path)));
  const files = new Map(tarballs.map(path => [`/-/${basename(path)}`, path]));
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url, 'http://localhost').pathname);
    const found = packages.get(path.slice(1));
    if (files.has(path)) {
      response.end(readFileSync(files.get(path)));
    } else if (found) {
      const tarball = `http://${request.headers.host}/-/${found.file}`;
      const { manifest, integrity } = found;
      const version = { ...manifest, dist: { tarball, integrity } };
      response.setHeader('content-type', 'application/json');
      response.end(
        JSON.stringify({
          name: manifest.name,
          'dist-tags': { latest: manifest.version },
          versions: { [manifest.version]: version },
        }),
      );
    } else if (path.startsWith('/@turbogr/')) {
      response.writeHead(404, { 'content-type': 'application/json' }).end('{"error":"not found"}');
    } else {
      response.writeHead(307, { location: new URL(request.url.slice(1), upstream).href }).end();
    }
  });
  await new Promise(listening => server.listen(0, '127.0.0.1', listening));
  return { url: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() };
}

function describe(path) {
  const manifest = JSON.parse(execFileSync('tar', ['-xzOf', path, 'package/package.json'], { encoding: 'utf8' }));
  const integrity = `sha512-${createHash('sha512').update(readFileSync(path)).digest('base64')}`;
  return [manifest.name, { manifest, integrity, file: basename(path) }];
}
