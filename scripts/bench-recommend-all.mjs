// Time and memory of `turbogr recommend --all` for a million synthetic users. Resident memory is that of the process that writes the
// lists, polled four times a second.
//
//   node scripts/bench-recommend-all.mjs [--users 1000000] [--items 20000] [--length 12] [--out parquet|csv|jsonl]
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    users: { type: 'string', default: '1000000' },
    items: { type: 'string', default: '20000' },
    length: { type: 'string', default: '12' },
    out: { type: 'string', default: 'parquet' },
  },
});
const [users, items, length] = [values.users, values.items, values.length].map(Number);
const main = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'turbogr-recommend-all-'));
try {
  await writeLog(join(folder, 'log.csv'));
  const run = join(folder, 'run');
  const short = ['maxSteps=2', 'priors=off', 'model.maxLength=50', 'trainUsers=1000'];
  const settings = short.flatMap(key => ['--set', key]);
  execFileSync(
    process.execPath,
    // Nothing is held out: testing a million users would take longer than all the rest.
    [main, 'train', join(folder, 'log.csv'), '--run', run, '--size', 'micro', '--split', 'none', ...settings],
    {
      stdio: ['ignore', 'ignore', 'inherit'],
    },
  );
  const out = join(folder, `recs.${values.out}`);
  const begin = performance.now();
  const child = spawn(process.execPath, [main, 'recommend', run, '--all', '--out', out], { stdio: 'inherit' });
  let peak = 0;
  const watch = setInterval(() => (peak = Math.max(peak, residentBytes(child.pid))), 250);
  const [status] = await once(child, 'close');
  clearInterval(watch);
  const seconds = (performance.now() - begin) / 1000;
  console.log(
    JSON.stringify({
      users,
      items,
      events: users * length,
      status,
      seconds: Number(seconds.toFixed(1)),
      usersPerSecond: Math.round(users / seconds),
      peakMegabytes: Math.round(peak / 1e6),
      fileMegabytes: Math.round(statSync(out).size / 1e6),
    }),
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function writeLog(path) {
  const file = createWriteStream(path);
  file.write('user_id,item_id,timestamp\n');
  for (let user = 0; user < users; user++) {
    const rows = Array.from(
      { length },
      (_, i) => `${user},${(user * 7919 + i * 104_729) % items},${1_600_000_000 + i * 3600}\n`,
    );
    if (!file.write(rows.join(''))) await once(file, 'drain');
  }
  file.end();
  await once(file, 'finish');
}

function residentBytes(pid) {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}
