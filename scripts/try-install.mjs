// Tries the first steps of a new user without cargo on the PATH: packs the tarballs of this platform, serves them from a local
// registry, runs `npm install turbogr` in an empty project (or, with --clone, the README's commands in a fresh clone), generates a
// small log, trains on it and gets a recommendation. Prints the seconds of each part.
//
//   node scripts/try-install.mjs [--clone] [--json]
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { serveRegistry } from './local-registry.mjs';
import { packMain, packPlatform } from './pack.mjs';
import { TARGETS } from './targets.mjs';

const LONGEST_SECONDS = 120;
const TOOLS = ['node', 'npm', 'npx', 'sh', 'env', 'git', 'tar', 'gzip', 'uname', 'basename', 'dirname', 'sed'];

const { values } = parseArgs({ options: { clone: { type: 'boolean' }, json: { type: 'boolean' } } });
const root = fileURLToPath(new URL('..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'turbogr-try-'));
const seconds = {};
let registry;
try {
  const target = TARGETS.find(({ os, cpu }) => os === process.platform && cpu === process.arch);
  const out = join(folder, 'tarballs');
  const tarballs = await timed('pack', () => [packMain(out), packPlatform(target.name, { out })]);
  const upstream = execFileSync('npm', ['config', 'get', 'registry'], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim();
  registry = await serveRegistry(tarballs, upstream);
  const project = join(folder, 'project');
  const env = {
    PATH: pathWithoutCargo(),
    HOME: folder,
    npm_config_registry: registry.url,
    npm_config_audit: 'false',
    npm_config_fund: 'false',
  };
  if (await succeeds('cargo', ['--version'], { env })) throw new Error('cargo is still on the PATH');

  if (values.clone) {
    execFileSync('git', ['clone', '--quiet', '--no-hardlinks', root, project]);
    await timed('install', () => run('npm', ['ci'], { cwd: project, env }));
  } else {
    mkdirSync(project);
    writeFileSync(join(project, 'package.json'), '{ "private": true }');
    await timed('install', () => run('npm', ['install', 'turbogr'], { cwd: project, env }));
  }
  const turbogr = (...args) =>
    run('npm', values.clone ? ['run', '--silent', 'turbogr', '--', ...args] : ['exec', 'turbogr', '--', ...args], {
      cwd: project,
      env,
    });
  await timed('synth', () =>
    turbogr('synth', '--out', 'log.csv', '--users', '300', '--videos', '200', '--mean-length', '30', '--no-margin'),
  );
  await timed('train', () => turbogr('train', 'log.csv', '--size', 'tiny', '--epochs', '2', '--run', 'run'));
  const answer = await timed('recommend', () => turbogr('recommend', 'run', '--user', '3', '--json'));
  const items = JSON.parse(answer);
  if (items.length !== 10) throw new Error(`expected 10 recommendations, got ${answer}`);

  const { pack: _ours, ...theirs } = seconds;
  const total = Object.values(theirs).reduce((sum, part) => sum + part, 0);
  console.log(
    values.json
      ? JSON.stringify({ seconds, total, items })
      : `first recommendation after ${total.toFixed(1)} s: ${Object.entries(theirs)
          .map(([part, s]) => `${part} ${s.toFixed(1)}`)
          .join(', ')}`,
  );
  if (total > LONGEST_SECONDS)
    throw new Error(`${total.toFixed(0)} s until the first recommendation, at most ${LONGEST_SECONDS}`);
} finally {
  registry?.close();
  rmSync(folder, { recursive: true, force: true });
}

/** A folder with links to the tools that an install needs; on Windows the PATH without cargo's folder. */
function pathWithoutCargo() {
  if (process.platform === 'win32') {
    return process.env.PATH.split(delimiter)
      .filter(path => !/[\\/]\.cargo[\\/]/.test(path))
      .join(delimiter);
  }
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  for (const tool of TOOLS) {
    const path = execFileSync('sh', ['-c', `command -v ${tool} || true`], { encoding: 'utf8' }).trim();
    if (path) symlinkSync(path, join(bin, tool));
  }
  return bin;
}

async function timed(part, work) {
  const start = performance.now();
  const result = await work();
  seconds[part] = (performance.now() - start) / 1000;
  return result;
}

/** The command's output, or its errors on failure. Not `spawnSync`: the registry runs in this process. */
function run(command, args, options) {
  return new Promise((done, fail) => {
    const child = spawn(command, args, { ...options, shell: process.platform === 'win32' });
    const output = { stdout: '', stderr: '' };
    for (const stream of ['stdout', 'stderr'])
      child[stream].setEncoding('utf8').on('data', text => (output[stream] += text));
    child.on('error', fail);
    child.on('close', code =>
      code === 0
        ? done(output.stdout)
        : fail(new Error(`${command} ${args.join(' ')} ended with ${code}\n${output.stdout}${output.stderr}`)),
    );
  });
}

async function succeeds(...call) {
  return await run(...call).then(
    () => true,
    () => false,
  );
}
