// Disk speed of a folder: write throughput, as for a checkpoint, and the latency of a small flush, as for every durable
// event.

import { closeSync, fsyncSync, mkdtempSync, openSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { writeFully } from '../../util/atomic-file.js';

const BLOCK = Buffer.alloc(4 << 20, 0x5a);
const BLOCKS = 16;
const FLUSHES = 20;

export interface DiskFigures {
  folder: string;
  freeBytes: number;
  writeBytesPerSecond: number;
  /** Median of a few flushes of one small write each. */
  flushMilliseconds: number;
}

export function measureDisk(folder: string): DiskFigures {
  const { bavail, bsize } = statfsSync(folder);
  const workspace = mkdtempSync(join(folder, '.turbogr-doctor-'));
  try {
    const fd = openSync(join(workspace, 'probe'), 'w');
    try {
      const start = performance.now();
      for (let i = 0; i < BLOCKS; i++) writeFully(fd, BLOCK);
      fsyncSync(fd);
      const seconds = (performance.now() - start) / 1000;
      const flushes = Array.from({ length: FLUSHES }, () => {
        const begin = performance.now();
        writeFully(fd, BLOCK.subarray(0, 256));
        fsyncSync(fd);
        return performance.now() - begin;
      }).sort((a, b) => a - b);
      return {
        folder,
        freeBytes: bavail * bsize,
        writeBytesPerSecond: (BLOCK.length * BLOCKS) / seconds,
        flushMilliseconds: flushes[FLUSHES >> 1]!,
      };
    } finally {
      closeSync(fd);
    }
  } finally {
    rmSync(workspace, { recursive: true, force: true });
  }
}
