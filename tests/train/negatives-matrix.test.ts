// Every sampler with every pool, sharing, mask, loss, storage and number of lanes: one thread that does one thing after the
// other gives the bits of several that overlap and read staged rows. TURBOGR_LONG=1 tries all combinations.
import { expect, test } from 'vitest';
import type { ConfigInput } from '../../src/config/schema.js';
import { toyConfig, trainToy } from './toy-run.js';

type Negatives = NonNullable<NonNullable<ConfigInput['loss']>['negatives']>;

const KINDS = ['uniform', 'popularity', 'in-batch', 'mixed'] as const;
const POOLS: readonly Negatives[] = [{ count: 6 }, { count: 6, pool: 20 }, { count: 20, pool: 20 }];
const SHARING: readonly Negatives[] = [{}, { sharing: { factor: 2 } }, { sharing: { factor: 3, of: 'scalars' } }];
const MASKS = ['positive', 'history'] as const;
const LOSSES = ['sampled-softmax', 'bce', 'gbce'] as const;
const STORAGE: readonly Negatives[] = [{}, { storage: 'f16' }, { storage: 'f16', segment: 1 }];
const LANES = [1, 3];

function* combinations(): Generator<ConfigInput> {
  for (const kind of KINDS)
    for (const pool of POOLS)
      for (const sharing of SHARING)
        for (const mask of MASKS)
          for (const loss of LOSSES)
            for (const storage of STORAGE)
              for (const lanes of LANES) {
                // Refused, see negatives.test.ts: a pool of a mixture, and sharing what all tokens have anyway.
                if (pool.pool && (kind === 'mixed' || (sharing.sharing && pool.count === pool.pool))) continue;
                const negatives = { kind, mask, ...pool, ...sharing, ...storage };
                yield { loss: { kind: loss, negatives }, batch: { tokens: 48, lanes }, maxSteps: 2 };
              }
}

const ALL = [...combinations()];
// Settings have two, three or four values: every 25th combination meets all of them.
const CHOSEN = process.env['TURBOGR_LONG'] ? ALL : ALL.filter((_, i) => i % 25 === 0);

test('any combination gives the same bits however it is computed', async () => {
  const digests = new Map<string, string>();
  for (const overrides of CHOSEN) {
    const plain = await trainToy({ config: toyConfig(overrides, { overlap: 'off' }), threads: 1 });
    const other = await trainToy({ config: toyConfig(overrides), threads: 3, staged: true });
    const losses = plain.losses.every(Number.isFinite);
    expect({ ...overrides, losses, digest: other.digest }).toEqual({
      ...overrides,
      losses: true,
      digest: plain.digest,
    });
    expect(other.losses).toEqual(plain.losses);
    // FP16 in one segment or many is the same; nothing else is, so no setting is ignored.
    const { kind, negatives } = overrides.loss!;
    const what = JSON.stringify({ kind, lanes: overrides.batch!.lanes, ...negatives, segment: undefined });
    expect(digests.get(plain.digest) ?? what).toBe(what);
    digests.set(plain.digest, what);
  }
}, 600_000);
