// The machine that a result was computed on, as printed in reports.

import { arch, cpus, platform, release, totalmem } from 'node:os';

export interface HostFacts {
  cpu: string;
  cores: number;
  memoryBytes: number;
  system: string;
  node: string;
}

export function machineFacts(): HostFacts {
  const limit = process.constrainedMemory();
  const total = totalmem();
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryBytes: limit > 0 && limit < total ? limit : total,
    system: `${platform()} ${release()} ${arch()}`,
    node: process.versions.node,
  };
}
