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

/** Open MPI names the rank that ended first. */
const ENDED = [
  /process rank (?<rank>\d+) with PID \d+ on node \S+ exited on (?<how>signal \d+)/,
  /Process name: \[\[\d+,\d+\],(?<rank>\d+)\]/,
];
/** Open MPI on a host that it lost; MPICH on a process that ended, which may be any that it has killed itself. */
const LOST_HOST = /Remote daemon: \S+ on node (?<host>\S+)/;
const SOME_PROCESS = /PID (?<pid>\d+) RUNNING AT/;
/** Lines of MPI's own post-mortems, which say less than we do. */
const NOISE =
  /^(-{20,}|={20,}|\s*$)|mpirun (noticed|detected|has exited|was unable)|prterun|MPI_ABORT was invoked|^(with errorcode|NOTE: invoking MPI_ABORT|You may or may not|exactly when Open MPI)|BAD TERMINATION|^=|CLEANING UP|YOU CAN IGNORE|ORTE_ERROR_LOG|YOUR APPLICATION TERMINATED|This typically refers|Please see the FAQ|^\[proxy|^\[mpiexec|Primary job {2}terminated|a non-zero exit code|job to be terminated|Process name:|Exit code:|abort\(\d+\) on node|application called MPI_Abort|^\[.*\] (\d+ more processes? ha|Set MCA parameter)|ORTE has lost communication|^ {2}(HNP|Remote) daemon *:|^(This is usually due to either|connection to the node, or possibly|the daemon itself\.|therefore will terminate)/;

/** Reads the lines that a job prints. */
export class FaultFinder {
  readonly #faults: RankFault[] = [];
  readonly #ranks: RankHello[] = [];
  #ended: RankFault | undefined;
  /** What MPI says when nobody knows better. */
  #hint: RankFault | undefined;

  /** The line to pass on to the person, or undefined when it was for us. */
  take(line: string): string | undefined {
    if (line.startsWith(HELLO)) {
      const hello: RankHello = JSON.parse(line.slice(HELLO.length));
      this.#ranks.push(hello);
      return undefined;
    }
    if (line.startsWith(MARK)) {
      const fault: RankFault = JSON.parse(line.slice(MARK.length));
      this.#faults.push(fault);
      return undefined;
    }
    this.#readBanner(line);
    return NOISE.test(line) ? undefined : line;
  }

  #readBanner(line: string): void {
    for (const banner of ENDED) {
      const { rank, how } = banner.exec(line)?.groups ?? {};
      if (rank !== undefined) this.#ended ??= this.#about(Number(rank), `it died${how ? ` by ${how}` : ''}`);
    }
    const host = LOST_HOST.exec(line)?.groups?.['host'];
    const lost = this.#ranks.find(hello => hello.host === host);
    if (lost) this.#hint ??= this.#about(lost.rank, 'its host cannot be reached');
    const pid = Number(SOME_PROCESS.exec(line)?.groups?.['pid']);
    const some = this.#ranks.find(hello => hello.pid === pid);
    if (some) this.#hint ??= this.#about(some.rank, 'it died');
  }

  #about(rank: number, cause: string): RankFault {
    const host = this.#ranks.find(hello => hello.rank === rank)?.host ?? 'its host';
    return { rank, host, by: rank, cause };
  }

  /**
   * The report that names the cause: what a rank says of itself, then what MPI saw, then what neighbours miss, then the
   * rank whose line to the launcher broke first.
   */
  cause(broken: number | undefined): RankFault | undefined {
    const own = this.#faults.filter(({ rank, by }) => rank === by).sort((a, b) => a.rank - b.rank);
    const died = broken === undefined ? undefined : this.#about(broken, 'it died');
    return own[0] ?? this.#ended ?? this.#faults[0] ?? died ?? this.#hint;
  }

  /** Whether a rank has reported a fault, its own or another's. */
  get reported(): boolean {
    return this.#faults.length > 0;
  }

  /** Whether all ranks report the same: then it is nobody's in particular. */
  get common(): boolean {
    const same = ({ rank, by, cause }: RankFault) => rank === by && cause === this.#faults[0]!.cause;
    return this.#faults.length > 1 && this.#faults.every(same);
  }
}
