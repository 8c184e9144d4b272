// What the doctor finds: on this machine with the real command, and on machines we do not have by their examination.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Examination, examineMachine } from '../../src/bench/machine/examine.js';
import { findings } from '../../src/bench/machine/findings.js';
import { compilerFamily, findMpi, launcherFamily } from '../../src/bench/machine/mpi.js';

let here: Examination;
beforeAll(async () => {
  here = { ...(await examineMachine('.')), cpu: { model: 'idle', logical: 2, usable: 2, features: ['avx2'], load: 0 } };
});

const says = (changed: Partial<Examination>) => findings({ ...here, ...changed });

describe('the examination', () => {
  it('measures what is here', () => {
    expect(here.core).toMatchObject({ kernels: expect.any(String), threads: expect.any(Number) });
    expect('peakFlops' in here.core && here.core.peakFlops).toBeGreaterThan(1e8);
    expect(here.disk.writeBytesPerSecond).toBeGreaterThan(0);
    expect(here.memory.availableBytes).toBeLessThanOrEqual(here.memory.totalBytes);
  });

  it('is printed by the command, for people and as JSON', () => {
    const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
    const run = (...flags: string[]) =>
      execFileSync(process.execPath, [main, 'doctor', ...flags], { encoding: 'utf8' });
    expect(run()).toMatch(/^turbogr .*\nCPU .*\n(.*\n)*kernels .*GFLOP\/s/);
    const told: Examination = JSON.parse(run('--json'));
    expect(told).toMatchObject({ target: here.target, findings: expect.any(Array) });
  });
});

describe('findings', () => {
  it('name what fails', () => {
    expect(says({ node: '18.20.1' })).toContainEqual(
      expect.objectContaining({ level: 'fails', what: 'Node 18.20.1 is too old' }),
    );
    const core = { code: 'native-missing', message: 'The native core is missing', remedy: 'npm install it' };
    expect(says({ core })).toContainEqual({ level: 'fails', what: core.message, remedy: core.remedy });
    expect(says({ disk: { ...here.disk, freeBytes: 1e6 } })).toContainEqual(
      expect.objectContaining({ level: 'fails' }),
    );
  });

  it('name what is slow', () => {
    const slow = expect.objectContaining({ level: 'slow' });
    const { core } = here;
    if (!('kernels' in core)) throw new Error('the core is missing');
    expect(says({ core: { ...core, kernels: 'portable' } })).toContainEqual(slow);
    expect(says({ disk: { ...here.disk, writeBytesPerSecond: 1e6 } })).toContainEqual(slow);
    expect(says({ memory: { ...here.memory, hugePages: 'never' } })).toContainEqual(slow);
    expect(says({ cpu: { ...here.cpu, load: 9 } })).toContainEqual(slow);
  });

  it('tell that AVX-512 is not used', () => {
    const { core } = here;
    if (!('kernels' in core)) throw new Error('the core is missing');
    const wide = { core: { ...core, kernels: 'avx2' }, cpu: { ...here.cpu, features: ['avx2', 'avx512f'] } };
    const told = expect.objectContaining({ level: 'note', what: expect.stringContaining('AVX-512') });
    expect(says(wide)).toContainEqual(told);
    expect(says({ ...wide, core: { ...core, kernels: 'avx512' } })).not.toContainEqual(told);
  });

  it('tell a launcher of another MPI than the compiler, under which every rank would start alone', () => {
    const launcher = { path: '/usr/bin/mpirun', family: 'Open MPI', version: '4.1.4' } as const;
    const compiler = { path: '/opt/mpich/bin/mpicc', family: 'MPICH' } as const;
    const told = says({ mpi: { slurm: false, launcher, compiler } });
    expect(told).toContainEqual(
      expect.objectContaining({ level: 'fails', what: expect.stringContaining('every rank') }),
    );
    expect(says({ mpi: { slurm: false, launcher, compiler: { ...compiler, family: 'Open MPI' } } })).not.toContainEqual(
      expect.objectContaining({ what: expect.stringContaining('every rank') }),
    );
  });
});

describe('MPI', () => {
  it('is told apart by what its programs say', () => {
    expect(launcherFamily('mpirun (Open MPI) 4.1.4\n')).toEqual({ family: 'Open MPI', version: '4.1.4' });
    expect(launcherFamily('HYDRA build details:\n    Version: 4.0.2\n')).toEqual({ family: 'MPICH', version: '4.0.2' });
    expect(launcherFamily('Intel(R) MPI Library for Linux* OS, Version 2021.9')).toMatchObject({ family: 'Intel MPI' });
    expect(compilerFamily('gcc -I/usr/lib/x86_64-linux-gnu/openmpi/include -lmpi')).toBe('Open MPI');
    expect(compilerFamily('gcc -I/usr/include/x86_64-linux-gnu/mpich -lmpich')).toBe('MPICH');
  });

  it('may be absent', () => {
    expect(findMpi({ PATH: '/nowhere' })).toEqual({ slurm: false });
    expect(says({ mpi: { slurm: false } })).toContainEqual(expect.objectContaining({ level: 'note' }));
  });
});
