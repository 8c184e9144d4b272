// Ways to train one small model that must end with the same bits, and those that they are compared with.

/** What is trained: ways are compared within one of these. */
export const SETTINGS: Readonly<Record<string, readonly string[]>> = {
  'hstu, sampled softmax, lazy-adam, clip': ['optimizer.table=lazy-adam', 'optimizer.clip=1'],
  'fuxi, sampled softmax, row-adagrad, average, clip': [
    'optimizer.clip=1',
    'model.kind=fuxi',
    'optimizer.table=row-adagrad',
    'optimizer.ema=0.9',
  ],
  'hstu, bce, adamw, clip': ['loss.kind=bce', 'optimizer.table=adamw', 'optimizer.clip=1'],
  'hstu, rows sent in 16 bits, lazy-adam, clip': ['optimizer.table=lazy-adam', 'optimizer.clip=1', 'wire=f16'],
  'fuxi, full softmax, lazy-adam': ['model.kind=fuxi', 'loss.kind=full-softmax', 'optimizer.table=lazy-adam'],
  'sasrec, gbce with popularity and history mask, row-adagrad': [
    'model.kind=sasrec',
    'loss.kind=gbce',
    'loss.negatives.kind=popularity',
    'loss.negatives.mask=history',
    'optimizer.table=row-adagrad',
  ],
  'hstu, FP16 negatives, shared, lazy-adam': [
    'loss.negatives.storage=f16',
    'loss.negatives.sharing.factor=2',
    'optimizer.table=lazy-adam',
  ],
};

/** Dense parameters of several tiles; on two ranks one of them is exchanged in two portions. */
const WIDE = [
  'model.d=512',
  'model.maxLength=50',
  'batch.tokens=400',
  'optimizer.table=lazy-adam',
  'optimizer.ema=0.9',
  'optimizer.weightDecay=0.1',
  'optimizer.clip=1',
];

/** Tables whose shards are not small, for negatives that owners send segment by segment. */
export const SEGMENTED: Readonly<Record<string, readonly string[]>> = {
  'FP16, clip': ['model.d=512', 'loss.negatives.storage=f16', 'optimizer.table=lazy-adam', 'optimizer.clip=1'],
  'FP16, shared, popularity, history masked': [
    'model.d=512',
    'model.kind=sasrec',
    'loss.negatives.storage=f16',
    'loss.negatives.kind=popularity',
    'loss.negatives.mask=history',
    'loss.negatives.sharing.factor=2',
    'optimizer.table=row-adagrad',
  ],
  'f32, gbce, of a pool': [
    'model.d=1024',
    'model.maxLength=20',
    'loss.kind=gbce',
    'loss.negatives.pool=500',
    'optimizer.table=adamw',
  ],
};

/** Besides the settings of the matrix. */
const OTHERS: Readonly<Record<string, readonly string[]>> = {
  wide: WIDE,
  'wide, not clipped': WIDE.filter(setting => !setting.startsWith('optimizer.clip')),
  pool: ['loss.negatives.pool=8', 'loss.negatives.count=8', 'optimizer.table=lazy-adam'],
  bce: ['loss.kind=bce', 'loss.negatives.count=1', 'optimizer.table=lazy-adam'],
  'bce, saturated': ['loss.kind=bce', 'loss.negatives.count=1', 'loss.temperature=0.0002', 'optimizer.table=lazy-adam'],
};

const SMALL = [
  'model.d=16',
  'model.blocks=1',
  'model.maxLength=50',
  'batch.tokens=120',
  'batch.lanes=5',
  'loss.kind=sampled-softmax',
  'loss.negatives.count=4',
];

export interface Way {
  name: string;
  /** Ways of the same kind must agree. */
  kind: string;
  ranks: number;
  groupSize: number;
  threads: number;
  settings: readonly string[];
  /** More items than the store has. */
  items?: number;
}

/** What the program says of a way. */
export interface WayResult {
  name: string;
  digest: string;
  losses: number[];
  changed: { read: number; changed: number }[];
  /** Bytes of optimiser state, by rank. */
  state: number[];
  /** Microseconds by which gradients left before the end of backward, by rank. */
  leads: (number | null)[];
  /** The same for the first updated parameters. */
  updateLeads: (number | null)[];
  /** Steps in which rows were sent again before the gradients of other rows. */
  parted: number;
  /** The most exchanges of row gradients before that. */
  between: number;
  /** Whether the gradients of rows were sent as factors. */
  factors: boolean;
  /** Bytes of all tensors at their peak, by rank. */
  reserved: number[];
}

export type Staleness = 0 | 1 | 2 | 'exact';

/** `exact` must end as 0 does. */
export function wayOf(
  setting: string,
  how: {
    ranks: number;
    groupSize: number;
    threads?: number;
    overlap?: 'on' | 'off';
    staleness?: Staleness;
    /** Of negatives in FP16; a lane has more rows than fit into two segments. */
    segment?: number;
    /** Lanes under way at once. */
    pipeline?: number;
  },
): Way {
  const { ranks, groupSize, threads = 1, overlap = 'on', staleness = 0, segment = 0, pipeline = 2 } = how;
  const same = staleness === 'exact' ? 0 : staleness;
  const settings = [
    ...SMALL,
    ...(SETTINGS[setting] ?? SEGMENTED[setting] ?? OTHERS[setting]!),
    `overlap=${overlap}`,
    `pipeline=${pipeline}`,
    `staleness=${staleness}`,
    `loss.negatives.segment=${segment}`,
  ];
  const where = `${ranks} ranks in groups of ${groupSize}, ${threads} threads, overlap ${overlap}, pipeline ${pipeline}`;
  return {
    name: `${setting}: ${where}, segments of ${segment}, staleness ${staleness}`,
    kind: `${setting}, staleness ${same}`,
    ranks,
    groupSize,
    threads,
    settings: [...new Map(settings.map(entry => [entry.split('=')[0], entry])).values()],
  };
}
