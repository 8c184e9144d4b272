// Bodies generated from the OpenAPI document, valid and invalid ones, from a seed: no answer is a 500, and answers to valid bodies
// match the document.
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { quickCheck } from '../../src/server/quick-validator.js';
import * as schemas from '../../src/server/schemas.js';
import { type RunningServer, serve } from '../../src/server/serve.js';
import { Random } from '../../src/util/random.js';
import { type SmallRun, smallRun } from '../support/small-run.js';

let small: SmallRun;
let server: RunningServer;
const bugs: Error[] = [];
beforeAll(async () => {
  small = await smallRun();
  server = await serve({
    run: small.run,
    port: 0,
    events: join(small.folder, 'ev'),
    reload: 0,
    grace: 0,
    onError: error => bugs.push(error),
  });
}, 300_000);
afterAll(async () => {
  await server.close();
  small[Symbol.dispose]();
});

type Schema = Record<string, unknown>;
const DOCUMENT = z.object({
  paths: z.record(z.string(), z.record(z.string(), z.looseObject({ requestBody: z.unknown().optional() }))),
});
const BODY = z.object({
  content: z.object({ 'application/json': z.object({ schema: z.record(z.string(), z.unknown()) }) }),
});

/** Awkward values of every type. */
const ODD: unknown[] = [
  null,
  true,
  0,
  -0,
  -1,
  1,
  1e308,
  -1e308,
  5e-324,
  2 ** 31,
  2 ** 53,
  9e18,
  0.5,
  '',
  ' ',
  '0',
  '-1',
  'NaN',
  '007',
  '\u0000',
  '𝒳',
  '__proto__',
  'a'.repeat(400),
  [],
  {},
  [[]],
  [null],
  { gte: 'x' },
  { __proto__: 1 },
];

class Maker {
  readonly random: Random;
  constructor(seed: number) {
    this.random = new Random(seed, 'fuzz');
  }

  pick<T>(values: readonly T[]): T {
    return values[this.random.below(values.length)]!;
  }

  /** A value for a schema; now and then something else. */
  value(schema: Schema, depth = 0): unknown {
    if (this.random.below(12) === 0) return this.pick(ODD);
    const choices = schema['anyOf'] ?? schema['oneOf'];
    if (Array.isArray(choices)) return this.value(this.pick(choices), depth);
    if (Array.isArray(schema['enum'])) return this.pick(schema['enum']);
    switch (schema['type']) {
      case 'object':
        return this.object(schema, depth);
      case 'array': {
        const length = this.pick([0, 1, 2, 5, 40]);
        const items = z.record(z.string(), z.unknown()).parse(schema['items'] ?? {});
        return Array.from({ length: depth > 3 ? 1 : length }, () => this.value(items, depth + 1));
      }
      case 'integer':
        return this.pick([0, 1, 2, 3, 7, 50, 89, 90, 1000, -1]);
      case 'number':
        return this.pick([0, 1.5, 1.6e9, -1.6e9, 9e18, -9e18, 1e18, 1_650_000_000]);
      case 'boolean':
        return this.random.below(2) === 0;
      default:
        return this.pick(['0', '3', '17', '89', 'x', '__proto__', 'constructor', '𝒳']);
    }
  }

  object(schema: Schema, depth: number): unknown {
    const properties = z.record(z.string(), z.record(z.string(), z.unknown())).parse(schema['properties'] ?? {});
    const required = new Set(z.array(z.string()).parse(schema['required'] ?? []));
    const made: Record<string, unknown> = {};
    for (const [name, inner] of Object.entries(properties)) {
      if (required.has(name) || this.random.below(3) === 0) made[name] = this.value(inner, depth + 1);
    }
    if (Object.keys(properties).length === 0 && this.random.below(2) === 0)
      made[this.pick(['title', 'x', '__proto__'])] = this.pick(ODD);
    return made;
  }
}

test('no body of 1,500 gets a 500', async () => {
  const document = DOCUMENT.parse(await (await fetch(`${server.url}/openapi.json`)).json());
  const routes = Object.entries(document.paths).flatMap(([path, methods]) => {
    const body = BODY.safeParse(methods['post']?.requestBody);
    return body.success ? [{ path, schema: body.data.content['application/json'].schema }] : [];
  });
  expect(routes).toHaveLength(5);
  const maker = new Maker(20);
  const seen = new Map<number, number>();
  for (let i = 0; i < 1500; i++) {
    const { path, schema } = maker.pick(routes);
    const body = JSON.stringify(maker.value(schema)) ?? 'undefined';
    const response = await fetch(`${server.url}${path}`, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json' },
    });
    seen.set(response.status, (seen.get(response.status) ?? 0) + 1);
    const text = await response.text();
    if (response.status >= 500) throw new Error(`${response.status} for ${path} ${body}: ${bugs.at(-1)?.stack}`);
    JSON.parse(text);
  }
  expect(bugs).toEqual([]);
  expect(seen.get(200)).toBeGreaterThan(100);
  expect(seen.get(400)).toBeGreaterThan(100);
});

test('what the quick check accepts zod accepts, with the same defaults', () => {
  const maker = new Maker(21);
  const { RECOMMEND_REQUEST, RANK_REQUEST, SIMILAR_REQUEST, EMBED_REQUEST, EVENTS_REQUEST } = schemas;
  for (const schema of [RECOMMEND_REQUEST, RANK_REQUEST, SIMILAR_REQUEST, EMBED_REQUEST, EVENTS_REQUEST]) {
    const accepts = quickCheck(schema);
    const described = z.record(z.string(), z.unknown()).parse(z.toJSONSchema(schema, { io: 'input' }));
    const bodies = Array.from({ length: 500 }, () => JSON.stringify(maker.value(described)) ?? 'null');
    const checked = bodies.map(text => {
      const [body, same]: unknown[] = [JSON.parse(text), JSON.parse(text)];
      return accepts(body) ? { text, body } : { text, refused: !schema.safeParse(same).success };
    });
    // What it refuses need not be wrong, but then it would be of little use.
    const expected = checked.map(({ text, body }) =>
      body === undefined ? { text, refused: true } : { text, body: schema.parse(JSON.parse(text)) },
    );
    expect(checked).toEqual(expected);
    expect(checked.filter(({ refused }) => refused).length).toBeGreaterThan(50);
    expect(checked.filter(({ refused }) => !refused).length).toBeGreaterThan(50);
  }
  const long = '𝒳'.repeat(300); // 600 units of UTF-16
  expect(quickCheck(schemas.SIMILAR_REQUEST)({ item: long })).toBe(false);
});
