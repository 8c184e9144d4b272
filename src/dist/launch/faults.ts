// The cause of a failed job as one sentence. Ranks report their own failure or a missing neighbour; the launcher collects
// these reports and MPI's own banner and selects the one that names the cause.

/** Exit code of a job ended by a fault, as opposed to an error that the user must fix (2). */
export const FAULT_CODE = 75;

/** One rank's report; see native/binding/src/ranks and `reportError`. */
export interface RankFault {
  /** The rank it is about. */
  rank: number;
  host: string;
  /** The rank that reports it. */
  by: number;
  cause: string;
  /** What the user can do, if known. */
  remedy?: string;
  /** The user must fix it: restarting would not help. */
  final?: boolean;
}

const MARK = '::turbogr-fault ';
/** Ranks by process id, for banners that name only those. */
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
/** Open MPI about a lost host; MPICH about a terminated process, which may be one that it killed itself. */
const LOST_HOST = /Remote daemon: \S+ on node (?<host>\S+)/;
const SOME_PROCESS = /PID (?<pid>\d+) RUNNING AT/;
/** Lines of MPI's own error output, which are less specific than our reports. */
const NOISE =
  /^(-{20,}|={20,}|\s*$)|mpirun (noticed|detected|has exited|was unable)|prterun|MPI_ABORT was invoked|^(with errorcode|NOTE: invoking MPI_ABORT|You may or may not|exactly when Open MPI)|BAD TERMINATION|^=|CLEANING UP|YOU CAN IGNORE|ORTE_ERROR_LOG|YOUR APPLICATION TERMINATED|This typically refers|Please see the FAQ|^\[proxy|^\[mpiexec|Primary job {2}terminated|a non-zero exit code|job to be terminated|Process name:|Exit code:|abort\(\d+\) on node|application called MPI_Abort|^\[.*\] (\d+ more processes? ha|Set MCA parameter)|ORTE has lost communication|^ {2}(HNP|Remote) daemon *:|^(This is usually due to either|connection to the node, or possibly|the daemon itself\.|therefore will terminate)/;

/** Parses the lines that a job prints. */
export class FaultFinder {
  readonly #faults: RankFault[] = [];
  readonly #ranks: RankHello[] = [];
  #ended: RankFault | undefined;
  /** MPI's explanation, used if there is no better one. */
  #hint: RankFault | undefined;

  /** The line to print, or undefined if it was meant for the launcher. */
  take(line: string): string | undefined {
    try {
      if (line.startsWith(HELLO)) {
        const hello: RankHello = JSON.parse(line.slice(HELLO.length));
        this.#ranks.push(hello);
        return undefined;
      }
      if (line.startsWith(MARK)) {
        this.add(JSON.parse(line.slice(MARK.length)));
        return undefined;
      }
    } catch {
      return line; // it was cut on its way
    }
    this.#readBanner(line);
    return NOISE.test(line) ? undefined : line;
  }

  /** A report that a rank has sent. */
  add(fault: RankFault): void {
    this.#faults.push(fault);
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
   * The report that names the cause, in this order of preference: a rank's report about itself, MPI's, a neighbour's, the
   * rank whose connection to the launcher broke first.
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

  /** Whether all ranks report the same error, so that it is not specific to one. */
  get common(): boolean {
    const same = ({ rank, by, cause }: RankFault) => rank === by && cause === this.#faults[0]!.cause;
    return this.#faults.length > 1 && this.#faults.every(same);
  }
}
