// What is in deploy/ can be read by what it is for, and gives commands that exist.

import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';

const DEPLOY = fileURLToPath(new URL('../../deploy', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'turbogr-deploy-'));
afterAll(() => rmSync(folder, { recursive: true }));

test.each([
  ['kubeflow-trainer.yaml', ['ClusterTrainingRuntime', 'TrainJob']],
  ['mpijob.yaml', ['MPIJob']],
])('%s', (name, kinds) => {
  const text = readFileSync(join(DEPLOY, name), 'utf8');
  const documents = parseAllDocuments(text);
  expect(documents.flatMap(document => [...document.errors, ...document.warnings])).toEqual([]);
  expect(documents.map(document => document.get('kind'))).toEqual(kinds);
  // As many lanes as ranks, as many ranks as nodes have room for.
  expect(text).toContain("-n, '32'");
  expect(text).toContain('batch.lanes=32');
  expect(text).toMatch(/(numProcPerNode|slotsPerWorker): 8/);
});

/** Runs a script with commands that only say how they were called. */
function calls(script: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): string[] {
  const bin = join(folder, 'bin');
  mkdirSync(bin, { recursive: true });
  for (const name of ['srun', 'npx', 'ssh', 'rsync']) {
    writeFileSync(join(bin, name), `#!/bin/sh\necho ${name} "$@"\n`);
    chmodSync(join(bin, name), 0o755);
  }
  const { stdout, stderr, status } = spawnSync('bash', [join(DEPLOY, script), ...args], {
    encoding: 'utf8',
    env: { ...process.env, ...env, PATH: `${bin}:${process.env['PATH']}` },
  });
  expect(stderr).toBe('');
  expect(status).toBe(0);
  return stdout.trim().split('\n');
}

test('slurm.sh', () => {
  const env = { SLURM_CPUS_PER_TASK: '8', SLURM_NTASKS: '16' };
  expect(calls('slurm.sh', ['/store', '--epochs', '3'], env)).toEqual([
    'srun --mpi=pmix --kill-on-bad-exit=1 npx turbogr train /store --threads 8 --set batch.lanes=16 --epochs 3',
  ]);
});

test('hosts.sh copies the store to the other hosts and trains on all', () => {
  expect(calls('hosts.sh', [folder, 'a:2,b:4', '--epochs', '3'])).toEqual([
    `ssh a mkdir -p ${folder}`,
    `rsync --archive --delete ${folder}/ a:${folder}/`,
    `ssh b mkdir -p ${folder}`,
    `rsync --archive --delete ${folder}/ b:${folder}/`,
    `npx turbogr launch -n 6 --hosts a:2,b:4 --restarts 3 train ${folder} --set batch.lanes=6 --epochs 3`,
  ]);
  expect(calls('hosts.sh', [folder, 'a:2'], { SHARED: '1' })).toHaveLength(1);
});
