// The videos of a synthetic log: topics, popularity, and series that are watched in order.
// Nothing is stored per video: everything about one is computed from its topic and its rank there, so a catalogue of
// 32 million costs no memory.
//
// V videos, C topics; video (topic c, rank k) is the k-th most popular of its topic and has popularity
// proportional to (k + q)^-s, a Zipf law with a flattened head and a long cold tail.

const ZIPF_EXPONENT = 1.6;
const ZIPF_OFFSET = 8;
/** The number of topics grows with the square root of the catalogue, so topics grow too. */
const TOPICS_PER_ROOT = 1.3;
/** Videos of neighbouring rank form a series, a ring of this many. */
const SERIES = 16;

const POWER = 1 - ZIPF_EXPONENT;

/** Integral of the popularity density up to rank x, up to a constant factor and offset. */
const cumulative = (x: number): number => (x + ZIPF_OFFSET) ** POWER;

/** Hashes an integer to 32 well-mixed bits: a video's fixed traits, cheaper than a random stream each. */
export function mixBits(value: number): number {
  let bits = Math.imul(value ^ (value >>> 16), 0x45d9f3b);
  bits = Math.imul(bits ^ (bits >>> 16), 0x45d9f3b);
  return (bits ^ (bits >>> 16)) >>> 0;
}

const greatestCommonDivisor = (a: number, b: number): number => (b === 0 ? a : greatestCommonDivisor(b, a % b));

export class VideoCatalogue {
  readonly videos: number;
  readonly topics: number;
  /** id = (popularity * idStride + idShift) mod V: a bijection, so that ids do not reveal the popularity. */
  readonly #idStride: number;
  readonly #idShift: number;

  constructor(videos: number, seed: number) {
    this.videos = videos;
    this.topics = Math.round(TOPICS_PER_ROOT * Math.sqrt(videos));
    this.#idShift = mixBits(seed) % videos;
    // About V / golden ratio spreads neighbours; V below 2^26 keeps the product exact in a double.
    let stride = Math.max(1, Math.floor(videos * 0.618));
    while (greatestCommonDivisor(videos, stride) !== 1) stride++;
    this.#idStride = stride;
  }

  /** Videos in a topic: topics alternate in the overall popularity order, so sizes differ by at most one. */
  topicSize(topic: number): number {
    return Math.floor((this.videos - topic - 1) / this.topics) + 1;
  }

  id(topic: number, rank: number): number {
    return ((rank * this.topics + topic) * this.#idStride + this.#idShift) % this.videos;
  }

  /** Rank of a video drawn by popularity, from a uniform number. */
  sampleRank(topic: number, uniform: number): number {
    const size = this.topicSize(topic);
    const first = cumulative(0);
    const x = (first + uniform * (cumulative(size) - first)) ** (1 / POWER) - ZIPF_OFFSET;
    return Math.max(0, Math.min(size - 1, Math.floor(x)));
  }

  /** Probability that `sampleRank` returns this rank. */
  popularity(topic: number, rank: number): number {
    const total = cumulative(this.topicSize(topic)) - cumulative(0);
    return (cumulative(rank + 1) - cumulative(rank)) / total;
  }

  /** Topic by popularity of topics, a flat Zipf law, from a uniform number. */
  sampleTopic(uniform: number): number {
    return Math.floor(this.topics * uniform ** 1.6);
  }

  /** The rank `steps` further in the cyclic series of `rank`. */
  seriesRank(topic: number, rank: number, steps: number): number {
    const start = rank - (rank % SERIES);
    const length = Math.min(SERIES, this.topicSize(topic) - start);
    return start + ((rank - start + steps) % length);
  }

  /** Quality of a video, uniform in [0, 1). */
  quality(id: number): number {
    return mixBits(id) / 0x1_0000_0000;
  }

  /** 3 s to about 4 minutes, mostly short. */
  durationMs(id: number): number {
    const spread = mixBits(id ^ 0x5bd1e995) / 0x1_0000_0000;
    return Math.floor(3_000 + 12_000 / (1.05 - spread));
  }
}
