// Embedding lookup and its gradient with and without padding ids, on the paper's own counts.

import { Device } from '../../native/device.js';
import { embeddingGather } from '../../ops/embedding-gather.js';
import { embeddingReduce } from '../../ops/embedding-reduce.js';
import { fillNormal } from '../../ops/fill.js';
import { disposeRowList } from '../../ops/row-list.js';
import { Table } from '../../ops/table.js';
import { Tape } from '../../ops/tape.js';
import { Random } from '../../util/random.js';
import { formatCount } from '../../util/terminal.js';
import { median } from '../measuring.js';
import type { PaperRow, Section, SectionOptions } from './row.js';

const IDS = 1_064_960;
const PADDING = 537_019;
const [ROWS, WIDTH, ROUNDS] = [1_000_000, 128, 5];

export const lookup: Section = {
  id: 'lookup',
  title: 'Embedding lookup without padding',
  about: `${formatCount(IDS)} ids of a padded batch, ${formatCount(PADDING)} of them padding (all the same row), width ${WIDTH}, ${formatCount(ROWS)} rows. Forward gathers the rows; backward sums the gradients of equal ids into one list of touched rows. A jagged batch never holds the padding ids.`,
  parts: [{ id: 'forward and backward', measure }],
};

async function measure({ threads }: SectionOptions): Promise<PaperRow[]> {
  using device = Device.open(threads === undefined ? {} : { threads });
  const value = device.tensor([ROWS, WIDTH]);
  fillNormal(device, value, { seed: 1, step: 0, purpose: 0 }, { std: 0.02 });
  const table = new Table(device, 'items', value);
  const random = new Random(1, 'bench lookup');
  const real = Int32Array.from({ length: IDS - PADDING }, () => random.below(ROWS));
  const padded = new Int32Array(IDS); // padding is row 0
  padded.set(real);
  const cases = [padded, real].map(ids => ({ ids, forward: [] as number[], backward: [] as number[] }));
  for (let round = 0; round <= ROUNDS; round++) {
    for (const { ids: host, forward, backward } of cases) {
      using ids = device.from(host);
      using tape = new Tape(device, { training: false });
      const clock = async (work: () => void): Promise<number> => {
        await device.sync();
        const start = performance.now();
        work();
        await device.sync();
        return performance.now() - start;
      };
      const there = await clock(() => embeddingGather(tape, [{ rows: table, ids }]));
      using source = device.tensor([host.length, WIDTH]);
      fillNormal(device, source, { seed: 1, step: 0, purpose: 1 }, { std: 1 });
      const back = await clock(() => {
        disposeRowList(embeddingReduce(device, table, [{ ids, source, scale: 1 }]));
      });
      if (round === 0) continue;
      forward.push(there);
      backward.push(back);
    }
  }
  const row = (pass: 'forward' | 'backward', paper: string): PaperRow => {
    const [before, after] = cases.map(times => median(times[pass]));
    return {
      name: `${pass}: padded -> jagged`,
      paper,
      ours: `${before!.toFixed(0)} -> ${after!.toFixed(0)} ms (${(before! / after!).toFixed(2)}x)`,
      figures: { padded_ms: before!, jagged_ms: after! },
    };
  };
  return [row('forward', '18 -> 3 ms (6.0x)'), row('backward', '36 -> 9 ms (4.0x)')];
}
