// A rank that sends so many bytes to each other one, in one exchange.
import { Device } from '../../../dist/native/device.js';
import { withRanks } from '../../../dist/dist/launch/rank-life.js';

const bytes = Number(process.argv[2]);
await withRanks(async ({ world: { rank, size }, world }) => {
  const device = Device.open({ threads: 1 });
  const counts = device.from(BigInt64Array.from({ length: size }, (_, r) => (r === rank ? 0n : BigInt(bytes / 4))));
  const [send, receive] = [rank + 1, 0].map(value => device.from(new Float32Array((size - 1) * (bytes / 4)).fill(value)));
  world.allToAllV(device, { send, sendCounts: counts, receive, receiveCounts: counts, unit: 1 });
  const others = Array.from({ length: size }, (_, r) => r + 1).filter(r => r !== rank + 1);
  const right = (await device.read(receive, 'comm')).every((x, i) => x === others[Math.floor(i / (bytes / 4))]);
  if (!right) throw new Error('other bytes than were sent');
  device.dispose();
});
