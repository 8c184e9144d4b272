// The mpirun command line, for each MPI. Both MPIs by default spin while waiting and bind each rank to one core, which hurts
// on machines with few cores, so both are switched off.

import { availableParallelism } from 'node:os';
import type { MpiKind } from './mpi-kind.js';

export interface RanksToStart {
  count: number;
  /** `host:slots,host:slots`; this machine when absent. */
  hosts?: string | undefined;
  /** Further flags for mpirun itself. */
  extra: readonly string[];
  /** Environment that remote ranks need. */
  environment: Readonly<Record<string, string>>;
}

export function mpirunArguments(kind: MpiKind, ranks: RanksToStart): string[] {
  return kind === 'openmpi' ? openMpi(ranks) : mpich(ranks);
}

/** Makes Open MPI's daemons notice a lost link after seconds, not minutes; slightly later than the ranks, whose reports are better. */
const KEEPALIVE = Object.entries({ time: 3, intvl: 1, probes: 4 }).flatMap(([name, value]) => [
  '--mca',
  `oob_tcp_keepalive_${name}`,
  String(value),
]);

function openMpi({ count, hosts, extra, environment }: RanksToStart): string[] {
  const root = process.getuid?.() === 0;
  const crowded = hosts === undefined && count > availableParallelism();
  return [
    '-n',
    String(count),
    ...(root ? ['--allow-run-as-root'] : []),
    ...(hosts === undefined ? ['--oversubscribe'] : ['--host', hosts]),
    '--bind-to',
    'none',
    ...(crowded ? ['--mca', 'mpi_yield_when_idle', '1'] : []),
    ...(hosts === undefined ? [] : KEEPALIVE),
    // Suppresses a note about missing InfiniBand hardware before every run.
    '--mca',
    'btl_base_warn_component_unused',
    '0',
    ...Object.keys(environment).flatMap(name => ['-x', name]),
    ...extra,
  ];
}

function mpich({ count, hosts, extra, environment }: RanksToStart): string[] {
  return [
    '-n',
    String(count),
    ...(hosts === undefined ? [] : ['-hosts', hosts]),
    '-bind-to',
    'none',
    ...Object.entries(environment).flatMap(([name, value]) => ['-genv', name, value]),
    ...extra,
  ];
}
