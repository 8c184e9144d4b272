// What `turbogr doctor` examines: facts about this machine, measured or read from the system.

import { existsSync, readFileSync, statSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';
import { findAddon, loadAddon } from '../../native/addon.js';
import { Device } from '../../native/device.js';
import { glibcVersion, targetName, thisMachine, VERSION } from '../../native/platform.js';
import { UserError } from '../../util/errors.js';
import { FmaPeak, median, readBandwidth } from '../measuring.js';
import { type DiskFigures, measureDisk } from './disk.js';
import { findMpi, type MpiFound } from './mpi.js';

/** Instruction sets that matter for kernels, in the names of /proc/cpuinfo. */
const FEATURES = ['avx2', 'fma', 'f16c', 'avx512f', 'avx512bw', 'avx512_vnni', 'avx512_bf16', 'amx_tile', 'asimd'];

export interface Core {
  path: string;
  from: 'local build' | 'package';
  builtAt: string;
  ops: number;
  kernels: string;
  threads: number;
  peakFlops: number;
  readBytesPerSecond: number;
}

export interface Examination {
  version: string;
  node: string;
  target: string;
  glibc: string | null;
  cpu: { model: string; logical: number; usable: number; features: string[]; load: number };
  memory: { totalBytes: number; limitBytes: number; availableBytes: number; hugePages: string | null };
  /** The core, or why there is none. */
  core: Core | { code: string; message: string; remedy: string };
  mpi: MpiFound;
  disk: DiskFigures;
}

export async function examineMachine(folder: string): Promise<Examination> {
  return {
    version: VERSION,
    node: process.versions.node,
    target: targetName(thisMachine()),
    glibc: glibcVersion() ?? null,
    cpu: {
      model: cpus()[0]?.model.trim() ?? 'unknown',
      logical: cpus().length,
      usable: availableParallelism(),
      features: cpuFeatures(),
      load: loadavg()[0] ?? 0,
    },
    memory: memory(),
    core: await examineCore(),
    mpi: findMpi(),
    disk: measureDisk(folder),
  };
}

function cpuFeatures(): string[] {
  if (!existsSync('/proc/cpuinfo')) return [];
  const [, line = ''] = /^(?:flags|Features)\s*:(.*)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8')) ?? [];
  const flags = new Set(line.trim().split(/\s+/));
  return FEATURES.filter(feature => flags.has(feature));
}

function memory(): Examination['memory'] {
  const totalBytes = totalmem();
  const limit = process.constrainedMemory();
  const setting = '/sys/kernel/mm/transparent_hugepage/enabled';
  return {
    totalBytes,
    limitBytes: limit > 0 && limit < totalBytes ? limit : totalBytes,
    availableBytes: availableMemory() ?? totalBytes,
    hugePages: existsSync(setting) ? (/\[(\w+)\]/.exec(readFileSync(setting, 'utf8'))?.[1] ?? null) : null,
  };
}

/** Memory available without swapping; page cache counts as free. */
function availableMemory(): number | undefined {
  if (!existsSync('/proc/meminfo')) return undefined;
  const kilobytes = /^MemAvailable:\s+(\d+) kB/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1];
  return kilobytes === undefined ? undefined : Number(kilobytes) * 1024;
}

async function examineCore(): Promise<Examination['core']> {
  try {
    const { path, from } = findAddon();
    const ops = loadAddon().opNames().length;
    using device = Device.open();
    const peak = new FmaPeak(device);
    for (let i = 0; i < 5; i++) await peak.sample();
    const { isa, threads } = device.stats();
    return {
      path,
      from,
      builtAt: statSync(path).mtime.toISOString(),
      ops,
      kernels: isa,
      threads,
      peakFlops: median(peak.samples),
      readBytesPerSecond: await readBandwidth(device),
    };
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    return { code: error.code, message: error.message, remedy: error.remedy };
  }
}
