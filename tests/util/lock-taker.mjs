// A contender for a lock, as a separate process. It takes the lock repeatedly; while holding it, it creates a file that must not
// exist yet, and then "dies": its lock stays behind like that of a dead process.
import { closeSync, openSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { lockFolder } from '../../dist/util/folder-lock.js';

const [folder, until, dead] = [process.argv[2], Number(process.argv[3]), process.argv[4]];
const inside = join(folder, 'inside');
const counts = { held: 0, refused: 0, together: 0, errors: [] };
let died = 0;

while (counts.held < 5000 && Date.now() < until) {
  let lock;
  try {
    lock = await lockFolder(folder);
  } catch (error) {
    if (error.code === 'run-busy') counts.refused++;
    else counts.errors.push(error.message);
    continue;
  }
  counts.held++;
  try {
    closeSync(openSync(inside, 'wx'));
    rmSync(inside);
  } catch {
    counts.together++;
  }
  if (counts.held % 3 === 0) {
    lock[Symbol.dispose]();
    continue;
  }
  const [mine] = readdirSync(join(folder, 'lock'));
  const left = `held.${dead}.${process.pid}${++died}.${mine.split('.').slice(3).join('.')}`;
  renameSync(join(folder, 'lock', mine), join(folder, 'lock', left));
  lock[Symbol.dispose]();
}
process.send(counts);
