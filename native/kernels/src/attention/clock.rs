//! The time bucket of every key of a block pair, for one query after the other. From one query to the next few keys change
//! their bucket, so each key stores until when its bucket is valid: the others cost one comparison, eight keys at a time. Any
//! order of times is correct; ascending keys and queries, as in a log, are fast.

use super::TimeBias;
use super::bias::BlockPair;
use super::bucket::Buckets;
use super::plan::BLOCK;
use crate::simd::{LANES, Simd};
use std::marker::PhantomData;

/// Keys whose comparison results fit in one word.
const WORD: usize = u64::BITS as usize;
/// Bucket of a key that is not yet visible.
const NONE: u8 = u8::MAX;

/// The bucket of every key at one query's time; invisible keys have none.
#[derive(Clone, Copy)]
pub struct Filed([u8; BLOCK + WORD]);

/// See the module header.
pub struct Clock<'a> {
    /// Time of each key of the block pair.
    times: &'a [i64],
    /// Time of each query of the block pair.
    query_times: &'a [i64],
    ts_w: &'a [f32],
    buckets: &'static Buckets,
    now: i64,
    /// From this time on, a key is no longer in its bucket.
    until: [i64; BLOCK + WORD],
    pub filed: Filed,
    /// The bucket's entry in `ts_w`.
    bias: [f32; BLOCK + LANES],
}

/// Keys `from..until` of a block pair share a bucket.
pub struct BucketRun {
    pub bucket: usize,
    pub from: usize,
    pub until: usize,
}

impl<'a> Clock<'a> {
    #[inline(always)]
    pub fn new(ts_w: &'a [f32], time: &TimeBias<'a>, pair: &BlockPair) -> Clock<'a> {
        let (key, query) = (pair.token + pair.key, pair.token + pair.query);
        Clock {
            times: &time.times[key..key + pair.keys],
            query_times: &time.query_times[query..query + pair.queries],
            ts_w,
            buckets: Buckets::get(),
            now: i64::MIN,
            until: [i64::MIN; BLOCK + WORD],
            filed: Filed([NONE; BLOCK + WORD]),
            bias: [0.0; BLOCK + LANES],
        }
    }

    /// Moves on to query `row`, which sees the first `visible` keys. Rows ascend.
    ///
    /// # Safety
    /// This CPU has `V`'s instructions; `visible` is at most the pair's number of keys.
    #[inline(always)]
    pub unsafe fn show<V: Simd>(&mut self, row: usize, visible: usize) {
        let before = std::mem::replace(&mut self.now, self.query_times[row]);
        if self.now < before {
            self.until[..visible].fill(i64::MIN);
        }
        for first in (0..visible).step_by(WORD) {
            let left = visible - first;
            let mut due = 0;
            for at in (0..left.min(WORD)).step_by(LANES) {
                // SAFETY: by this function's contract.
                due |= unsafe { V::at_most(self.until.as_ptr().add(first + at), self.now) } << at;
            }
            if left < WORD {
                due &= (1 << left) - 1;
            }
            while due > 0 {
                self.file(first + due.trailing_zeros() as usize);
                due &= due - 1;
            }
        }
    }

    /// Updates a key's bucket for the current time.
    #[inline(always)]
    fn file(&mut self, key: usize) {
        let time = self.times[key];
        let bucket = self.buckets.of(self.now - time);
        self.filed.0[key] = bucket as u8;
        self.bias[key] = self.ts_w[bucket];
        // A key in the future comes closer: it is checked again.
        self.until[key] = match time <= self.now {
            true => time + self.buckets.least(bucket + 1),
            false => i64::MIN,
        };
    }

    /// The time terms of the visible keys, with slack for a vector.
    #[inline(always)]
    pub fn bias(&self) -> *const f32 {
        self.bias.as_ptr()
    }
}

impl Filed {
    /// The runs of equal buckets among the first `visible` keys, left to right.
    #[inline(always)]
    pub fn runs<V: Simd>(&self, visible: usize) -> BucketRuns<'_, V> {
        BucketRuns {
            bucket: &self.0,
            visible,
            from: 0,
            word: 0,
            // SAFETY: the array is longer than a word.
            ends: unsafe { V::changes(self.0.as_ptr()) },
            lanes: PhantomData,
        }
    }
}

/// See [`Filed::runs`].
pub struct BucketRuns<'a, V> {
    bucket: &'a [u8; BLOCK + WORD],
    visible: usize,
    from: usize,
    /// First key of the word in `ends`.
    word: usize,
    /// Bit mask of the last keys of runs. Invisible keys have no bucket, so a run ends before them.
    ends: u64,
    lanes: PhantomData<V>,
}

impl<V: Simd> Iterator for BucketRuns<'_, V> {
    type Item = BucketRun;

    #[inline(always)]
    fn next(&mut self) -> Option<BucketRun> {
        while self.ends == 0 {
            self.word += WORD;
            if self.word >= self.visible {
                return None;
            }
            // SAFETY: a word past the last visible key is still in the array.
            self.ends = unsafe { V::changes(self.bucket.as_ptr().add(self.word)) };
        }
        let (from, until) = (self.from, self.word + self.ends.trailing_zeros() as usize + 1);
        self.from = until;
        self.ends &= self.ends - 1;
        let bucket = self.bucket[from] as usize;
        Some(BucketRun { bucket, from, until })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attention::bucket::{BUCKETS, bucket_by_definition};
    use crate::isa::available;
    use crate::rng::{Key, word};
    use crate::simd::{Kernel, dispatch};

    /// Every query of a block pair against the definition.
    struct Walk<'a> {
        times: &'a [i64],
        query_times: &'a [i64],
        pair: BlockPair,
        what: &'a str,
    }

    impl Kernel for Walk<'_> {
        #[inline(always)]
        unsafe fn run<V: Simd>(self) {
            let ts_w: [f32; BUCKETS] = std::array::from_fn(|bucket| bucket as f32);
            let time = TimeBias {
                term: super::super::TimeTerm::Buckets(&ts_w),
                times: self.times,
                query_times: self.query_times,
            };
            let mut clock = Clock::new(&ts_w, &time, &self.pair);
            for row in 0..self.pair.queries {
                let visible = self.pair.visible(row);
                // SAFETY: by the contract of `dispatch`.
                unsafe { clock.show::<V>(row, visible) };
                let now = self.query_times[self.pair.query + row];
                let keys = &self.times[self.pair.key..self.pair.key + visible];
                let want: Vec<usize> = keys.iter().map(|key| bucket_by_definition(now - key)).collect();
                let bias: Vec<usize> = clock.bias[..visible].iter().map(|bias| *bias as usize).collect();
                assert_eq!(bias, want, "{} row {row}", self.what);
                let runs: Vec<(usize, usize)> = clock
                    .filed
                    .runs::<V>(visible)
                    .map(|x| (x.bucket, x.until - x.from))
                    .collect();
                let chunks: Vec<(usize, usize)> = want.chunk_by(|x, y| x == y).map(|x| (x[0], x.len())).collect();
                assert_eq!(runs, chunks, "{} row {row}", self.what);
            }
        }
    }

    #[test]
    fn shows_the_bucket_of_every_key_whatever_the_order_of_times() {
        let draw = |i: usize, below: u32| i64::from(word(Key(5, 6), i as u64) % below);
        let step: [(&str, &dyn Fn(usize) -> i64); 4] = [
            ("ascending", &|i| draw(i, 1 << (1 + draw(i + 1000, 20)))),
            ("ties", &|i| draw(i, 4) / 3),
            ("shuffled", &|i| draw(i, 2_000_001) - 1_000_000),
            ("huge gaps", &|i| 1 << draw(i, 43)),
        ];
        for (what, step) in step {
            for (tokens, queries, keys) in [
                (1, 0..1, 0..1),
                (70, 0..70, 0..70),
                (500, 240..500, 0..240),
                (288, 0..288, 0..288),
            ] {
                let mut now = 1 << 40;
                let times: Vec<i64> = (0..=tokens)
                    .map(|i| {
                        now += step(i);
                        now
                    })
                    .collect();
                let pair = BlockPair::new(0, queries.clone(), keys.clone());
                for isa in available() {
                    let (query_times, times) = (&times[1..], &times[..tokens]);
                    let walk = Walk {
                        times,
                        query_times,
                        pair,
                        what,
                    };
                    // SAFETY: `isa` is one this CPU has.
                    unsafe { dispatch(isa, walk) };
                }
            }
        }
    }
}
