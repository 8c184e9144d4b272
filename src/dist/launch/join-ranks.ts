// How a process becomes a rank: it detects its launcher, opens the shim of that MPI, and checks that all ranks are in one
// world and agree on the job. Mismatches are refused before any work, with one message.

import { closeRanks, openRanks, type RankWorld, watchRanks } from '../../native/ranks.js';
import { UserError } from '../../util/errors.js';
import { type Communicator, gatherJson } from '../comm/communicator.js';
import { MpiRanks } from '../comm/mpi-ranks.js';
import { SingleRank } from '../comm/single-rank.js';
import { buildShim } from './build-shim.js';
import { FAULT_CODE } from './faults.js';
import { kindOfText, MPI_KINDS, MPI_NAMES, type MpiKind, type StartedBy, startedBy } from './mpi-kind.js';

/** Seconds for which a rank's JavaScript thread may be blocked. */
const PATIENCE = 120;

/** This process among the ranks. */
export interface Ranks {
  readonly world: Communicator;
  /** Host name of each rank; empty for a rank on its own. */
  readonly hosts: readonly string[];
  /** Name and version of the MPI library; empty for a rank on its own. */
  readonly library: string;
  /** Leaves the world, together with all other ranks. */
  close(): void;
}

/** The rank assigned by the launcher: known without MPI, and decides which rank reports errors. */
export function launchedRank(env: NodeJS.ProcessEnv = process.env): number {
  return startedBy(env)?.rank ?? 0;
}

/** Joins the world that a launcher made, or stays alone. Once per process. */
export function joinRanks(env: NodeJS.ProcessEnv = process.env): Ranks {
  const started = startedBy(env);
  const expected = Number(env['TURBOGR_WORLD'] ?? started?.size ?? 1);
  if (!started || expected === 1) {
    refuseSingletons(expected, 1, 'nothing');
    return { world: new SingleRank(), hosts: [], library: '', close: () => undefined };
  }
  // UCX, which MPICH and Open MPI may load, patches sbrk to watch the heap, for a registration cache that only RDMA needs. The
  // patch occasionally unmaps memory that is in use (UCX 1.13; one start in 25 with three ranks that allocate much).
  process.env['UCX_MEM_EVENTS'] ??= 'n';
  const shim = buildShim(chosenKind(env, started));
  const world = openRanks(shim.path);
  checkWorld(world, started, expected);
  const ranks = new MpiRanks({ comm: 0, rank: world.rank, size: world.size });
  watchRanks({
    patience: Number(env['TURBOGR_PATIENCE'] ?? PATIENCE),
    json: env['TURBOGR_LAUNCHED'] !== undefined,
    code: FAULT_CODE,
  });
  return { world: ranks, hosts: world.hosts, library: world.library, close: closeRanks };
}

function chosenKind(env: NodeJS.ProcessEnv, { kind }: StartedBy): MpiKind | undefined {
  const asked = env['TURBOGR_MPI'];
  if (asked === undefined || asked === '') return kind;
  const found = MPI_KINDS.find(name => name === asked);
  if (!found) {
    throw new UserError(
      'unknown-mpi',
      `TURBOGR_MPI is "${asked}"`,
      `Set it to ${MPI_KINDS.join(' or ')}, or unset it.`,
    );
  }
  return found;
}

function checkWorld({ size, library }: RankWorld, { kind }: StartedBy, expected: number): void {
  const opened = kindOfText(library);
  if (kind && opened && kind !== opened) {
    throw new UserError(
      'mpi-mismatch',
      `the ranks were started by ${MPI_NAMES[kind]} but opened ${MPI_NAMES[opened]} (${library})`,
      `Start them with ${MPI_NAMES[opened]}'s mpirun, or unset TURBOGR_MPI.`,
    );
  }
  refuseSingletons(expected, size, library);
}

/** Guards against a launcher and a library of different MPIs: N worlds of one rank, each training alone. */
function refuseSingletons(expected: number, size: number, library: string): void {
  if (size === expected) return;
  throw new UserError(
    'world-size',
    `${expected} ranks were started, but MPI connects ${size} (library: ${library})`,
    'Launcher and library belong to different MPIs: start the ranks with `npx turbogr launch`, or set TURBOGR_MPI.',
  );
}

/** What all ranks must have in common, by name. */
export type Fingerprints = Readonly<Record<string, string>>;

/** Refuses ranks that differ; every rank throws the same error. */
export async function agreeOn(ranks: Communicator, fingerprints: Fingerprints): Promise<void> {
  const all = await gatherJson(ranks, fingerprints);
  for (const name of Object.keys(all[0]!)) {
    const other = all.findIndex(theirs => theirs[name] !== all[0]![name]);
    if (other < 0) continue;
    throw new UserError(
      'ranks-differ',
      `rank ${other} has another ${name} than rank 0 (${short(all[other]![name])}, not ${short(all[0]![name])})`,
      'Give every host the same version of turbogr, the same config and the same store, then start again.',
    );
  }
}

function short(fingerprint: string | undefined): string {
  return fingerprint === undefined ? 'none' : fingerprint.slice(0, 12);
}
