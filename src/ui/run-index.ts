// The runs in given folders, each opened once and then followed.

import { existsSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { sha256 } from '../util/hash.js';
import { RunViewer } from '../view/run-view.js';

/** Maximum depth of runs: `runs/demo/run` is two below `runs`. */
const DEPTH = 3;
const NO_RUNS = new Set(['checkpoints', 'store', 'node_modules', 'tensorboard']);

export interface IndexedRun {
  /** Stable as long as the folder is not moved. */
  id: string;
  viewer: RunViewer;
}

export class RunIndex {
  readonly #roots: readonly string[];
  readonly #runs = new Map<string, IndexedRun>();

  constructor(roots: readonly string[]) {
    this.#roots = roots;
  }

  /** All current runs, by path. */
  list(): IndexedRun[] {
    const found = new Set(this.#roots.flatMap(root => findRuns(root, DEPTH)));
    for (const path of found) {
      const id = sha256(resolve(path)).slice(0, 12);
      if (this.#runs.has(id)) continue;
      try {
        this.#runs.set(id, { id, viewer: new RunViewer(path) });
      } catch {
        // Being created, damaged, or of another version: `turbogr resume` reports the problem.
      }
    }
    for (const [id, { viewer }] of this.#runs) if (!found.has(viewer.run.path)) this.#runs.delete(id);
    return [...this.#runs.values()].sort((a, b) => (a.viewer.run.path < b.viewer.run.path ? -1 : 1));
  }

  get(id: string): IndexedRun | undefined {
    if (!this.#runs.has(id)) this.list();
    return this.#runs.get(id);
  }
}

function findRuns(folder: string, depth: number): string[] {
  if (existsSync(join(folder, 'run.json'))) return [folder];
  if (depth === 0 || !existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true })
    .filter(entry => entry.isDirectory() && !entry.name.startsWith('.') && !NO_RUNS.has(entry.name))
    .flatMap(entry => findRuns(join(folder, entry.name), depth - 1));
}
