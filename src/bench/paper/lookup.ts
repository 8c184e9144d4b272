// Embedding lookup with and without padding ids, on the paper's own counts.

import { Device } from '../../native/device.js';
import { fillNormal } from '../../ops/fill.js';
import { embeddingGather } from '../../ops/embedding-gather.js';
import { Table } from '../../ops/table.js';
import { Tape } from '../../ops/tape.js';
import { Random } from '../../util/random.js';
import { formatCount } from '../../util/terminal.js';
import { median } from '../measuring.js';
import type { Section } from './row.js';

const IDS = 1_064_960;
const PADDING = 537_019;
const [ROWS, WIDTH, ROUNDS] = [1_000_000, 128, 5];

export const lookup: Section = {
  id: 'lookup',
  title: 'Embedding lookup without padding',
  about: `${formatCount(IDS)} ids of a padded batch, ${formatCount(PADDING)} of them padding, width ${WIDTH}, ${formatCount(ROWS)} rows, forward. A jagged batch never holds the padding ids.`,
  async measure({ threads }) {
    using device = Device.open(threads === undefined ? {} : { threads });
    const value = device.tensor([ROWS, WIDTH]);
    fillNormal(device, value, { seed: 1, step: 0, purpose: 0 }, { std: 0.02 });
    const table = new Table(device, 'items', value);
    const random = new Random(1, 'bench lookup');
    const real = Int32Array.from({ length: IDS - PADDING }, () => random.below(ROWS));
    const padded = new Int32Array(IDS); // padding is row 0
    padded.set(real);
    const times = { padded: [] as number[], jagged: [] as number[] };
    for (let round = 0; round <= ROUNDS; round++) {
      for (const [name, ids] of [
        ['padded', padded],
        ['jagged', real],
      ] as const) {
        using uploaded = device.from(ids);
        await device.sync();
        const start = performance.now();
        using tape = new Tape(device, { training: false });
        embeddingGather(tape, [{ rows: table, ids: uploaded }]);
        await device.sync();
        if (round > 0) times[name].push(performance.now() - start);
      }
    }
    const [before, after] = [median(times.padded), median(times.jagged)];
    return [
      {
        section: 'lookup',
        name: 'forward: padded -> jagged',
        paper: '18 -> 3 ms',
        ours: `${before.toFixed(0)} -> ${after.toFixed(0)} ms (${(before / after).toFixed(2)}x)`,
        figures: { padded_ms: before, jagged_ms: after },
      },
    ];
  },
};
