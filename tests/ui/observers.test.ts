// Observers of a run: TensorBoard event files and Prometheus metrics, through the command line.
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { crc32c, scalarRecord } from '../../src/events/tfevents.js';
import { readEvents } from '../../src/train/event-log.js';
import { parseAddress, serveMetrics, TrainingMetrics } from '../../src/ui/training-metrics.js';
import { TensorBoardWriter } from '../../src/view/tensorboard.js';
import { type SmallRun, smallRun } from '../support/small-run.js';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
let small: SmallRun;
beforeAll(async () => {
  small = await smallRun();
});
afterAll(() => small[Symbol.dispose]());

interface Point {
  step: number;
  tag: string;
  value: number;
}

/** An independent reading of an event file: frames with their checksums, then the fields of the messages. */
function readTfevents(path: string): Point[] {
  const bytes = readFileSync(path);
  const masked = (part: Buffer): number => {
    const crc = crc32c(part);
    return Number((BigInt((crc >>> 15) | (crc << 17)) + 0xa282ead8n) & 0xffffffffn);
  };
  const points: Point[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = Number(bytes.readBigUInt64LE(at));
    expect(bytes.readUInt32LE(at + 8)).toBe(masked(bytes.subarray(at, at + 8)));
    const message = bytes.subarray(at + 12, at + 12 + length);
    expect(bytes.readUInt32LE(at + 12 + length)).toBe(masked(message));
    at += 16 + length;
    const fields = readFields(message);
    const step = fields.find(({ field }) => field === 2)?.number ?? 0;
    for (const { bytes: summary } of fields.filter(({ field }) => field === 5)) {
      for (const { bytes: value } of readFields(summary)) {
        const [tag, number] = readFields(value);
        points.push({ step, tag: tag!.bytes.toString(), value: number!.bytes.readFloatLE() });
      }
    }
  }
  return points;
}

interface Field {
  field: number;
  /** Of a varint; bytes hold anything else. */
  number: number;
  bytes: Buffer;
}

const VARINT = 0;
const WIDTHS: Readonly<Record<number, number>> = { 1: 8, 5: 4 };

function readFields(message: Buffer): Field[] {
  const fields: Field[] = [];
  let at = 0;
  const varint = (): number => {
    let [value, place] = [0, 1];
    for (;;) {
      const byte = message[at++]!;
      value += (byte & 0x7f) * place;
      place *= 128;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.length) {
    const key = varint();
    const number = (key & 7) === VARINT ? varint() : 0;
    const length = (key & 7) === VARINT ? 0 : (WIDTHS[key & 7] ?? varint());
    fields.push({ field: key >> 3, number, bytes: message.subarray(at, at + length) });
    at += length;
  }
  return fields;
}

describe('TensorBoard', () => {
  test('checksums are CRC-32C', () => {
    expect(crc32c(Buffer.from('123456789'))).toBe(0xe3069283);
    expect(crc32c(Buffer.alloc(32))).toBe(0x8a9136aa); // RFC 3720, appendix B.4
    expect(scalarRecord(0, 2 ** 40, { a: 1 }).length).toBeGreaterThan(30);
  });

  test('every step and validation is in the file, once', () => {
    const writer = new TensorBoardWriter(small.run);
    writer.update();
    writer.update();
    writer.close();
    const points = readTfevents(writer.path);
    const events = readEvents(join(small.run, 'events.jsonl'));
    const losses = events.filter(event => event.kind === 'step').map(({ step, loss }) => [step, Math.fround(loss)]);
    expect(points.filter(({ tag }) => tag === 'train/loss').map(({ step, value }) => [step, value])).toEqual(losses);
    expect(points.map(({ tag }) => tag)).toEqual(
      expect.arrayContaining(['validation/ndcg@10', 'baseline/popularity', 'train/mfu_paper', 'epoch/loss']),
    );
    rmSync(writer.path);
  });
});

describe('Prometheus', () => {
  test('addresses: this machine unless another host is named', () => {
    expect(parseAddress(':9090')).toEqual({ host: '127.0.0.1', port: 9090 });
    expect(parseAddress('9090')).toEqual({ host: '127.0.0.1', port: 9090 });
    expect(parseAddress('0.0.0.0:80')).toEqual({ host: '0.0.0.0', port: 80 });
    expect(parseAddress('[::1]:80')).toEqual({ host: '::1', port: 80 });
    expect(() => parseAddress('here')).toThrow(/not an address/);
    expect(() => parseAddress(':99999')).toThrow(/not an address/);
  });

  test('the figures are those of the events', async () => {
    const metrics = new TrainingMetrics();
    for (const event of readEvents(join(small.run, 'events.jsonl'))) metrics.see(event);
    const server = await serveMetrics(metrics, parseAddress(':0'));
    const text = await (await fetch(server.url)).text();
    expect((await fetch(server.url.replace('metrics', 'other'))).status).toBe(404);
    await server.close();
    const events = readEvents(join(small.run, 'events.jsonl'));
    const last = events.filter(event => event.kind === 'step').at(-1)!;
    const tokens = events.reduce((sum, event) => sum + (event.kind === 'step' ? event.tokens : 0), 0);
    expect(text).toContain(`turbogr_training_loss ${last.loss}\n`);
    expect(text).toContain(`turbogr_training_tokens_total ${tokens}\n`);
    expect(text).toMatch(/turbogr_training_validation\{metric="ndcg@10"\} 0\.\d+/);
    expect(text).toMatch(/turbogr_training_baseline\{metric="ndcg@10",baseline="popularity"\} /);
    expect(text).toContain('turbogr_training_finished 1');
  });
});

test('train --metrics --tensorboard --ui: all three answer while it trains, and the command ends by itself', async () => {
  const flags = ['--metrics', ':0', '--tensorboard', '--ui', '0', '--epochs', '40', '--size', 'tiny'];
  const args = [MAIN, 'train', join(small.run, 'store'), '--run', join(small.folder, 'watched'), ...flags];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  let answers: string[] = [];
  const ended = new Promise<number | null>(resolve => child.on('close', resolve));
  for await (const chunk of child.stdout.setEncoding('utf8')) {
    said += chunk;
    const [, metrics] = /metrics: (\S+)/.exec(said) ?? [];
    const [, ui] = /dashboard: (\S+)/.exec(said) ?? [];
    if (answers.length === 0 && metrics && ui && said.includes('epoch  1')) {
      answers = [await (await fetch(metrics)).text(), await (await fetch(`${ui}/api/runs`)).text()];
      child.kill('SIGTERM');
    }
  }
  expect(await ended).toBe(143);
  expect(answers[0]).toContain('turbogr_training_run_info');
  expect(answers[1]).toContain('"state":"running"');
  const [file] = readdirSync(join(small.folder, 'watched', 'tensorboard'));
  expect(readTfevents(join(small.folder, 'watched', 'tensorboard', file!)).length).toBeGreaterThan(10);
});
