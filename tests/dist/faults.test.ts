// Which of the reports that a failing job leaves behind is the cause.

import { expect, test } from 'vitest';
import { faultLine, FaultFinder, helloLine } from '../../src/dist/launch/faults.js';

function finder(...lines: string[]): FaultFinder {
  const found = new FaultFinder();
  const hellos = [0, 1, 2].map(rank => helloLine({ rank, host: `host${rank}`, pid: 100 + rank }));
  for (const line of [...hellos, ...lines]) expect(found.take(line)).toBeUndefined();
  return found;
}

const OPEN_MPI = 'mpirun noticed that process rank 1 with PID 101 on node host1 exited on signal 9 (Killed).';
const MPICH = '=   PID 100 RUNNING AT host0';
const LOST = '  Remote daemon: [[1,0],1] on node host2';
const missed = faultLine({ rank: 2, host: 'host2', by: 0, cause: 'no sign of life' });
const own = faultLine({ rank: 0, host: 'host0', by: 0, cause: 'a bug' });

test('Open MPI knows the rank that died', () => {
  expect(finder(OPEN_MPI).cause(2)).toMatchObject({ rank: 1, host: 'host1', cause: 'it died by signal 9' });
});

test('MPICH names any rank that it has ended: the line that broke first is right', () => {
  expect(finder(MPICH).cause(1)).toMatchObject({ rank: 1, host: 'host1', cause: 'it died' });
  expect(finder(MPICH).cause(undefined)).toMatchObject({ rank: 0, cause: 'it died' });
});

test('what a rank says of itself comes first, then what neighbours miss', () => {
  expect(finder(missed, MPICH, own).cause(1)).toMatchObject({ rank: 0, cause: 'a bug' });
  expect(finder(missed, MPICH, LOST).cause(1)).toMatchObject({ rank: 2, cause: 'no sign of life' });
});

test('a lost host is named by one of its ranks', () => {
  expect(finder(LOST).cause(undefined)).toMatchObject({ rank: 2, host: 'host2', cause: 'its host cannot be reached' });
});

test('a fault is common only where all ranks report it of themselves', () => {
  const both = [0, 1].map(rank => faultLine({ rank, host: `host${rank}`, by: rank, cause: 'no store' }));
  expect(finder(...both).common).toBe(true);
  expect(finder(missed, faultLine({ rank: 2, host: 'host2', by: 1, cause: 'no sign of life' })).common).toBe(false);
});

test("lines of the job's own output pass", () => {
  expect(new FaultFinder().take('epoch 1  loss 3.2')).toBe('epoch 1  loss 3.2');
});

test('a report that was cut on its way is printed as it came', () => {
  const cut = missed.slice(0, -5);
  expect(new FaultFinder().take(cut)).toBe(cut);
});
