// A rank that makes every exchange and checks what came; rank 0 prints one line of JSON.
import { Device } from '../../../dist/native/device.js';
import { gatherJson } from '../../../dist/dist/comm/communicator.js';
import { joinRanks } from '../../../dist/dist/launch/join-ranks.js';

const ranks = joinRanks();
const { world } = ranks;
const { rank, size } = world;
const device = Device.open({ threads: 1 });
const counts = numbers => device.from(BigInt64Array.from(numbers.map(BigInt)));
const everybody = Array.from({ length: size }, (_, r) => r);
const faults = [];
const expect = (what, fine) => fine || faults.push(`rank ${rank}: ${what}`);

// All to all: rank r sends (r + 1) * 1000 + i rows of two to rank i; some send nothing.
const rows = (from, to) => (from === to + 1 ? 0 : (from + 1) * 1000 + to);
const sent = everybody.map(to => rows(rank, to));
const received = everybody.map(from => rows(from, rank));
const total = list => list.reduce((sum, n) => sum + n, 0);
const values = new Float32Array(total(sent) * 2);
let at = 0;
for (const to of everybody) for (let i = 0; i < sent[to] * 2; i++) values[at++] = rank * 100 + to + i / 1e6;
const into = device.tensor([total(received), 2]);
const send = device.from(values, [total(sent), 2]);
const [sendCounts, receiveCounts] = [counts(sent), counts(received)];
world.allToAllV(device, { send, sendCounts, receive: into, receiveCounts, unit: 2 });
const got = await device.read(into, 'comm');
at = 0;
let bad = 0;
for (const from of everybody)
  for (let i = 0; i < received[from] * 2; i++) if (got[at++] !== Math.fround(from * 100 + rank + i / 1e6)) bad++;
expect(`all to all: ${bad} wrong`, bad === 0 && got.length === at);

// All gather: rank r has r * 3 elements, three megabytes from the last one.
const lengths = everybody.map(r => (r === size - 1 ? 786_433 : r * 3));
const part = device.from(new Int32Array(Math.max(1, lengths[rank])).fill(rank + 1));
const gathered = device.tensor([1, total(lengths)], 'i32');
const gatherCounts = counts(lengths);
world.allGatherV(device, { send: part, receive: gathered, counts: gatherCounts, unit: 1 });
const all = await device.read(gathered, 'comm');
at = 0;
expect('all gather', everybody.every(r => Array.from({ length: lengths[r] }, () => all[at++]).every(x => x === r + 1)));

// Broadcast from the last rank.
const shared = device.from(new Float32Array(1000).fill(rank));
world.broadcast(device, shared, size - 1);
expect('broadcast', (await device.read(shared, 'comm')).every(x => x === size - 1));

// Groups: odd and even ranks, in falling order; and the node.
const half = world.split(rank % 2, -rank);
const names = await gatherJson(half, { rank });
const members = everybody.filter(r => r % 2 === rank % 2).toReversed();
expect('split', half.rank === members.indexOf(rank) && names.map(n => n.rank).join() === members.join());
const node = world.node();
expect('node', node.size === size && node.rank === rank);
world.barrier(device);
await device.sync();

// Counts that ask for more than there is are refused before anything moves.
world.allToAllV(device, { send, sendCounts, receive: shared, receiveCounts, unit: 2 });
const refused = await device.sync().then(
  () => '',
  error => error.message,
);
expect(`room: ${refused}`, size === 1 || refused.includes('counts that ask for'));

const every = (await gatherJson(world, faults)).flat();
if (rank === 0) process.stdout.write(`${JSON.stringify({ size, library: ranks.library, faults: every })}\n`);
device.dispose();
ranks.close();
