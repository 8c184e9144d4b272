// The connection of ranks to their launcher: reports arrive and are confirmed, and the first one to break is remembered.
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import type { RankFault } from '../../src/dist/launch/faults.js';
import { Lifeline, Lifelines } from '../../src/dist/launch/lifelines.js';

const fault: RankFault = { rank: 1, host: 'host1', by: 0, cause: 'no sign of life' };

test('a report is heard and confirmed; who reports or says goodbye is not taken for dead', async () => {
  const lines = await Lifelines.open(false);
  const heard: RankFault[] = [];
  lines.onFault = one => void heard.push(one);
  const [reporting, leaving] = [new Lifeline(0, lines.environment), new Lifeline(2, lines.environment)];
  expect(await reporting.report(fault)).toBe(true);
  expect(heard).toEqual([fault]);
  reporting.close();
  leaving.close();
  await sleep(50);
  expect(lines.broken).toBeUndefined();
  lines.close();
});

test('the first rank whose connection breaks is remembered; strangers are not', async () => {
  const lines = await Lifelines.open(false);
  const [, host, port, token] = /^(.+):(.+):(.+)$/.exec(Object.values(lines.environment)[0]!)!;
  const say = async (line: string) => {
    const socket = connect({ host: host!, port: Number(port) });
    await once(socket, 'connect');
    await new Promise(written => socket.write(`${line}\n`, written));
    return socket;
  };
  const [stranger, first, second] = [await say('guess 7'), await say(`${token} 3`), await say(`${token} 4`)];
  stranger.on('error', () => undefined).destroy();
  first.destroy();
  await expect.poll(() => lines.broken).toBe(3);
  second.destroy();
  await sleep(50);
  expect(lines.broken).toBe(3);
  lines.close();
});

test('without a launcher a report is not confirmed', async () => {
  expect(await new Lifeline(0, {}).report(fault)).toBe(false);
  const lines = await Lifelines.open(false);
  lines.close();
  const late = new Lifeline(0, lines.environment);
  await sleep(50);
  expect(await late.report(fault)).toBe(false);
});
