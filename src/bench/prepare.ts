// `turbogr bench prepare`: times `turbogr prepare` on a synthetic log in KuaiRand's layout, interleaved with DuckDB alone
// sorting and writing the same columns, and measures how fast the finished store is read.

import { type ChildProcess, spawn } from 'node:child_process';
import { createReadStream, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from '@commander-js/extra-typings';
import { Engine, literal, parseBytes } from '../data/prepare/engine.js';
import { PRESETS } from '../data/prepare/presets.js';
import { SequenceStore } from '../data/store/sequence-store.js';
import { UserError } from '../util/errors.js';
import { countNumber } from '../util/number-flags.js';
import { formatCount, formatSeconds, table } from '../util/terminal.js';
import { median } from './measuring.js';

const SAMPLE_MS = 50;
const READ_SECONDS = 2;
const WINDOW = 2048;
const BATCH_TOKENS = 65_536;

export interface PrepareBench {
  readonly rows: number;
  readonly memory: string;
  readonly rounds: number;
  /** Times are medians over the rounds. */
  readonly seconds: number;
  readonly baseline_seconds: number;
  /** Time of prepare / time of DuckDB alone. */
  readonly ratio: number;
  /** The same in CPU time, which a busy machine affects less. */
  readonly cpu_seconds: number;
  readonly baseline_cpu_seconds: number;
  /** Sum of the peaks of all processes in the tree, maximum over the rounds. */
  readonly peak_rss_mb: number;
  readonly read_tokens_per_s: number;
  /** Seconds of each stage of prepare in the last round. */
  readonly stages: Readonly<Record<string, number>>;
}

export function benchPrepareCommand() {
  return new Command('prepare')
    .description('prepare a synthetic log: time against DuckDB alone, peak memory, reading speed')
    .option('--rows <n>', 'events of the log', Number, 60_000_000)
    .option('--memory <size>', "limit of DuckDB's memory, for both", '1GB')
    .option('--log <file>', "use this log in KuaiRand's layout instead of making one")
    .option('--rounds <n>', 'rounds of each program', countNumber, 3)
    .option('--json', 'print one JSON object')
    .action(async ({ rows, memory, log, rounds, json }) => {
      const folder = mkdtempSync(join(tmpdir(), 'turbogr-bench-prepare-'));
      try {
        const file = log ?? (await makeLog(join(folder, 'log.csv'), rows));
        const result = await benchPrepare({ file, folder, memory, rounds });
        process.stdout.write(`${json ? JSON.stringify(result) : resultText(result)}\n`);
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    });
}

async function makeLog(file: string, rows: number): Promise<string> {
  await runCommand(['synth', '--out', file, '--rows', String(rows), '--no-margin', '--json']);
  return file;
}

interface BenchInput {
  file: string;
  folder: string;
  memory: string;
  rounds: number;
}

async function benchPrepare({ file, folder, memory, rounds }: BenchInput): Promise<PrepareBench> {
  const store = join(folder, 'store');
  const { user = '', item = '', time = '', actionBits = [] } = PRESETS['kuairand-27k']?.options ?? {};
  const columns = ['--user', user, '--item', item, '--time', time, '--action-bits', ...actionBits];
  const action = actionBits.map((bit, b) => `(${bit} <> 0)::INTEGER * ${2 ** b}`).join(' + ');
  const query = `SELECT ${user}::INTEGER, ${item}::INTEGER, ${time}::BIGINT, ${action} FROM read_csv(${literal(file)}) ORDER BY ${user}, ${time}`;
  const ours: (Timed & { peakRssMb: number })[] = [];
  const baseline: Timed[] = [];
  const contestants = [
    async () => ours.push(await prepared(['prepare', file, '--out', store, '--force', '--memory', memory, ...columns])),
    async () => baseline.push(await duckdbAlone({ folder, memory, query })),
  ];
  await readThrough(file);
  for (let round = 0; round < rounds; round++) {
    for (const contestant of contestants) await contestant();
    contestants.reverse(); // the order alternates
  }
  const of = (times: readonly Timed[], key: keyof Timed): number => median(times.map(time => time[key]));
  const opened = SequenceStore.open(store);
  return {
    rows: opened.events,
    memory,
    rounds,
    seconds: of(ours, 'seconds'),
    baseline_seconds: of(baseline, 'seconds'),
    ratio: of(ours, 'seconds') / of(baseline, 'seconds'),
    cpu_seconds: of(ours, 'cpuSeconds'),
    baseline_cpu_seconds: of(baseline, 'cpuSeconds'),
    peak_rss_mb: Math.max(...ours.map(({ peakRssMb }) => peakRssMb)),
    read_tokens_per_s: readingSpeed(opened),
    stages: stagesOf(JSON.parse(readFileSync(join(store, 'report.json'), 'utf8'))),
  };
}

interface Timed {
  seconds: number;
  cpuSeconds: number;
}

async function prepared(args: readonly string[]): Promise<Timed & { peakRssMb: number }> {
  const begin = performance.now();
  const figures = await runCommand([...args, '--json']);
  return { seconds: (performance.now() - begin) / 1000, ...figures };
}

/** Loads the log into the page cache, as far as it fits, for both programs. */
async function readThrough(file: string): Promise<void> {
  for await (const _piece of createReadStream(file, { highWaterMark: 1 << 20 })) continue;
}

function stagesOf(report: unknown): Record<string, number> {
  const seconds = report !== null && typeof report === 'object' && 'seconds' in report ? report.seconds : {};
  return Object.fromEntries(Object.entries(seconds ?? {}).map(([stage, value]) => [stage, Number(value)]));
}

async function duckdbAlone({
  folder,
  memory,
  query,
}: {
  folder: string;
  memory: string;
  query: string;
}): Promise<Timed> {
  const begin = performance.now();
  const cpu = process.cpuUsage();
  const engine = await Engine.open({ scratch: folder, memoryBytes: parseBytes(memory) });
  await engine.run('SET preserve_insertion_order = false');
  await engine.run(`COPY (${query}) TO ${literal(join(folder, 'sorted.parquet'))} (FORMAT parquet)`);
  engine.close();
  const { user, system } = process.cpuUsage(cpu);
  return { seconds: (performance.now() - begin) / 1000, cpuSeconds: (user + system) / 1e6 };
}

/** Tokens per second when copying random users' latest windows into a batch, after one warm-up pass. */
function readingSpeed(store: SequenceStore): number {
  const into = {
    item: new Int32Array(BATCH_TOKENS),
    ...(store.hasTime && { time: new Float64Array(BATCH_TOKENS) }),
    ...(store.hasAction && { action: new Int32Array(BATCH_TOKENS) }),
  };
  const pass = (seconds: number): number => {
    let tokens = 0;
    let user = 0;
    let at = 0;
    const begin = performance.now();
    do {
      for (let k = 0; k < 256; k++) {
        user = (user + 7919) % store.users;
        const to = store.length(user);
        const from = Math.max(0, to - WINDOW);
        if (at + to - from > BATCH_TOKENS) at = 0;
        store.read(user, from, to, into, at);
        at += to - from;
        tokens += to - from;
      }
    } while (performance.now() - begin < seconds * 1000);
    return tokens / ((performance.now() - begin) / 1000);
  };
  pass(READ_SECONDS);
  return pass(READ_SECONDS);
}

/** Runs this program with other arguments; figures cover its whole process tree. */
async function runCommand(args: readonly string[]): Promise<{ peakRssMb: number; cpuSeconds: number }> {
  const child = spawn(process.execPath, [process.argv[1] ?? '', ...args], { stdio: ['ignore', 'ignore', 'inherit'] });
  const seen = new Map<number, { peakRssMb: number; cpuSeconds: number }>();
  const timer = setInterval(() => {
    for (const pid of processTree(child)) {
      const now = processFigures(pid);
      if (now) seen.set(pid, now);
    }
  }, SAMPLE_MS);
  try {
    const status = await new Promise<number | null>((resolve, reject) => {
      child.once('exit', resolve);
      child.once('error', reject);
    });
    if (status !== 0) {
      throw new UserError('bench-failed', `turbogr ${args[0]} ended with status ${status}`, 'Its message is above.');
    }
  } finally {
    clearInterval(timer);
  }
  let peakRssMb = 0;
  let cpuSeconds = 0;
  for (const figures of seen.values()) {
    peakRssMb += figures.peakRssMb;
    cpuSeconds += figures.cpuSeconds;
  }
  return { peakRssMb, cpuSeconds };
}

function processTree({ pid }: ChildProcess): number[] {
  const found = pid === undefined ? [] : [pid];
  for (const parent of found) {
    const path = `/proc/${parent}/task/${parent}/children`;
    if (existsSync(path)) found.push(...readFileSync(path, 'utf8').split(' ').filter(Boolean).map(Number));
  }
  return found;
}

/** Ticks of /proc/<pid>/stat: 100 per second on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

/** Peak memory and CPU time so far; undefined without /proc or if the process has just ended. */
function processFigures(pid: number): { peakRssMb: number; cpuSeconds: number } | undefined {
  try {
    const peak = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    const [, afterName = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(/\) (.*)/s);
    const fields = afterName.split(' ');
    if (peak === undefined) return undefined;
    return {
      peakRssMb: Number(peak) / 1024,
      cpuSeconds: (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND,
    };
  } catch {
    return undefined;
  }
}

function resultText(result: PrepareBench): string {
  return table(
    ['rows', 'prepare', 'DuckDB alone', 'ratio', 'ratio of CPU time', 'peak RSS', 'reading'],
    [
      [
        formatCount(result.rows),
        formatSeconds(result.seconds),
        formatSeconds(result.baseline_seconds),
        result.ratio.toFixed(2),
        (result.cpu_seconds / result.baseline_cpu_seconds).toFixed(2),
        `${formatCount(result.peak_rss_mb)} MB`,
        `${(result.read_tokens_per_s / 1e6).toFixed(0)} M tokens/s`,
      ],
    ],
  );
}
