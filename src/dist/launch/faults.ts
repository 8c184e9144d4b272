// What went wrong in a job of many ranks, as one sentence. Ranks that fail or miss a neighbour each say so; the launcher
// hears all of them, and MPI's own banner, and chooses the one that names the cause.

/** Exit code of a job that a fault ended, as opposed to one that a person must mend (2). */
export const FAULT_CODE = 75;

/** One rank's report; see native/binding/src/ranks and `reportError`. */
export interface RankFault {
  /** The rank it is about. */
  rank: number;
  host: string;
  /** The rank that says so. */
  by: number;
  cause: string;
  /** What a person can do, where that is known. */
  remedy?: string;
  /** A person must mend it: starting again would not help. */
  final?: boolean;
}

const MARK = '::turbogr-fault ';
/** Who is who, for banners that know only process numbers. */
const HELLO = '::turbogr-rank ';

export interface RankHello {
  rank: number;
  host: string;
  pid: number;
}

export function faultLine(fault: RankFault): string {
  return `${MARK}${JSON.stringify(fault)}`;
}

export function helloLine(hello: RankHello): string {
  return `${HELLO}${JSON.stringify(hello)}`;
}

const BANNERS = [
  // Open MPI
  /process rank (?<rank>\d+) with PID (?<pid>\d+) on node (?<host>\S+) exited on (?<how>signal \d+)/,
  /Process name: \[\[\d+,\d+\],(?<rank>\d+)\]/,
  // MPICH
  /PID (?<pid>\d+) RUNNING AT (?<host>\S+)/,
];
/** Lines of MPI's own post-mortems, which say less than we do. */
const NOISE =
  /^(-{20,}|={20,}|\s*$)|mpirun (noticed|detected|has exited|was unable)|prterun|MPI_ABORT was invoked|^(with errorcode|NOTE: invoking MPI_ABORT|You may or may not|exactly when Open MPI)|BAD TERMINATION|^=|CLEANING UP|YOU CAN IGNORE|ORTE_ERROR_LOG|YOUR APPLICATION TERMINATED|This typically refers|Please see the FAQ|^\[proxy|^\[mpiexec|Primary job {2}terminated|a non-zero exit code|job to be terminated|Process name:|Exit code:|abort\(\d+\) on node|application called MPI_Abort|^\[.*\] \d+ more processes? ha/;

/** Reads the lines that a job prints. */
export class FaultFinder {
  readonly #faults: RankFault[] = [];
  readonly #ranks = new Map<number, RankHello>();
  #banner: RankFault | undefined;

  /** The line to pass on to the person, or undefined when it was for us. */
  take(line: string): string | undefined {
    if (line.startsWith(HELLO)) {
      const hello: RankHello = JSON.parse(line.slice(HELLO.length));
      this.#ranks.set(hello.pid, hello);
      return undefined;
    }
    if (line.startsWith(MARK)) {
      const fault: RankFault = JSON.parse(line.slice(MARK.length));
      this.#faults.push(fault);
      return undefined;
    }
    for (const banner of BANNERS) this.#readBanner(banner.exec(line)?.groups);
    return NOISE.test(line) ? undefined : line;
  }

  #readBanner(found: Record<string, string | undefined> | undefined): void {
    if (!found || this.#banner) return;
    const known = this.#ranks.get(Number(found['pid']));
    const rank = found['rank'] === undefined ? known?.rank : Number(found['rank']);
    const host = found['host'] ?? [...this.#ranks.values()].find(hello => hello.rank === rank)?.host ?? 'its host';
    if (rank === undefined) return;
    this.#banner = { rank, host, by: rank, cause: found['how'] ? `it died by ${found['how']}` : 'it died' };
  }

  /** The report that names the cause: what a rank says of itself, then what MPI saw, then what neighbours miss. */
  get cause(): RankFault | undefined {
    const own = this.#faults.filter(({ rank, by }) => rank === by).sort((a, b) => a.rank - b.rank);
    return own[0] ?? this.#banner ?? this.#faults[0];
  }

  /** Whether all ranks report the same: then it is nobody's in particular. */
  get common(): boolean {
    return this.#faults.length > 1 && this.#faults.every(({ cause }) => cause === this.#faults[0]!.cause);
  }
}
