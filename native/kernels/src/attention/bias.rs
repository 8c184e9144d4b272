//! The relative bias of a block of queries against a block of keys, computed once for all heads of a group, and the
//! reverse: summing a block of score gradients into the gradients of the bias tables.
//!
//! Along a row the position term is contiguous in its table, and the time term is constant over runs of keys: times
//! usually ascend, so a run's end is found by comparing times with one limit instead of taking a bucket for every pair.

use super::Bias;
use super::bucket::Buckets;
use super::plan::BLOCK;
use super::table_grads::Partial;
use crate::arena::Lease;
use crate::ctx::Ctx;
use crate::simd::{LANES, Simd};
use std::ops::Range;

/// Floats of a block of biases; rows are [`BLOCK`] apart, and whole vectors may be written past a row's end.
pub const SQUARE: usize = BLOCK * BLOCK + LANES;

/// A bias made ready: the past half of `pos_w`, with slack behind it for whole vectors.
pub struct Tables<'a> {
    past: Lease<'a, f32>,
    bias: Bias<'a>,
    n: usize,
}

/// Which queries and keys of one sequence: `queries` from position `query`, `keys` from `key`, at most [`BLOCK`] each.
#[derive(Clone, Copy)]
pub struct Window {
    /// Batch row of the sequence's first token.
    pub token: usize,
    pub query: usize,
    pub queries: usize,
    pub key: usize,
    pub keys: usize,
}

impl Window {
    pub fn new(token: usize, queries: Range<usize>, keys: Range<usize>) -> Window {
        let seen = keys.len().min(queries.end - keys.start);
        Window {
            token,
            query: queries.start,
            queries: queries.len(),
            key: keys.start,
            keys: seen,
        }
    }

    /// Keys of the window that the query `row` sees.
    #[inline(always)]
    pub fn visible(&self, row: usize) -> usize {
        (self.query + row + 1).saturating_sub(self.key).min(self.keys)
    }
}

/// The terms of the bias wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Term {
    Both,
    Position,
    Time,
}

impl<'a> Tables<'a> {
    pub fn new(cx: &'a Ctx, bias: Bias<'a>, n: usize) -> Tables<'a> {
        let mut past = cx.scratch::<f32>(n + LANES);
        past[..n].copy_from_slice(&bias.pos_w[..n]);
        past[n..].fill(0.0);
        Tables { past, bias, n }
    }

    /// Fills a square with the bias of a window. Keys a query does not see hold anything.
    #[inline(always)]
    pub unsafe fn fill<V: Simd>(&self, window: &Window, term: Term, square: *mut f32) {
        unsafe {
            for row in 0..window.queries {
                let to = square.add(row * BLOCK);
                if term == Term::Position || self.bias.time.is_none() {
                    let past = self.past(window, row);
                    for at in (0..window.visible(row)).step_by(LANES) {
                        V::load(past.add(at)).store(to.add(at));
                    }
                } else if term == Term::Time {
                    self.fill_time::<V>(window, row, to);
                } else {
                    self.fill_both::<V>(window, row, to);
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn fill_both<V: Simd>(&self, window: &Window, row: usize, to: *mut f32) {
        let past = self.past(window, row);
        for run in self.runs(window, row) {
            unsafe {
                let time = V::splat(*self.time_table().get_unchecked(run.bucket));
                for at in (run.from..run.until).step_by(LANES) {
                    V::load(past.add(at)).add(time).store(to.add(at));
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn fill_time<V: Simd>(&self, window: &Window, row: usize, to: *mut f32) {
        for run in self.runs(window, row) {
            unsafe {
                let time = V::splat(*self.time_table().get_unchecked(run.bucket));
                for at in (run.from..run.until).step_by(LANES) {
                    time.store(to.add(at));
                }
            }
        }
    }

    /// The position terms of a query, from the window's first key on.
    #[inline(always)]
    fn past(&self, window: &Window, row: usize) -> *const f32 {
        self.past
            .as_ptr()
            .wrapping_add(window.key + self.n - 1 - (window.query + row))
    }

    pub fn has_time(&self) -> bool {
        self.bias.time.is_some()
    }

    fn time_table(&self) -> &[f32] {
        self.bias.time.as_ref().map_or(&[], |time| time.ts_w)
    }

    /// The runs of equal buckets among the keys that a query sees, left to right; none without times.
    #[inline(always)]
    fn runs(&self, window: &Window, row: usize) -> Runs<'_> {
        let (times, now) = match &self.bias.time {
            Some(time) => {
                let first = window.token + window.key;
                let query = window.token + window.query + row;
                (&time.times[first..first + window.visible(row)], time.query_times[query])
            }
            None => (&[][..], 0),
        };
        Runs {
            times,
            now,
            from: 0,
            buckets: Buckets::get(),
        }
    }

    /// Adds a square of score gradients to the partial sums of a task.
    #[inline(always)]
    pub unsafe fn scatter<V: Simd>(&self, window: &Window, term: Term, square: *const f32, partial: &Partial) {
        unsafe {
            for row in 0..window.queries {
                let (ds, visible) = (square.add(row * BLOCK), window.visible(row));
                if term != Term::Time {
                    let to = partial.position.add(BLOCK - 1 - row);
                    for at in (0..visible).step_by(LANES) {
                        let to = to.add(at);
                        V::load(to).add(V::load_upto(ds.add(at), visible - at)).store(to);
                    }
                }
                if term != Term::Position {
                    for Run { bucket, from, until } in self.runs(window, row) {
                        let mut sum = V::zero();
                        for at in (from..until).step_by(LANES) {
                            sum = sum.add(V::load_upto(ds.add(at), until - at));
                        }
                        *partial.time.add(bucket) += f64::from(sum.sum());
                    }
                }
            }
        }
    }
}

/// Keys `from..until` of a window share a bucket.
struct Run {
    bucket: usize,
    from: usize,
    until: usize,
}

/// See [`Tables::runs`].
struct Runs<'a> {
    times: &'a [i64],
    now: i64,
    from: usize,
    buckets: &'static Buckets,
}

impl Iterator for Runs<'_> {
    type Item = Run;

    #[inline(always)]
    fn next(&mut self) -> Option<Run> {
        let (times, from) = (self.times, self.from);
        let start = *times.get(from)?;
        let gap = self.now - start;
        let bucket = self.buckets.of(gap);
        let mut until = from + 1;
        if gap >= 0 {
            // Later keys stay in the bucket while their time lies in start..=limit.
            let limit = self.now - self.buckets.least(bucket);
            while let Some(next) = times.get(until..until + LANES)
                && next
                    .iter()
                    .fold(true, |all, time| all & (start <= *time) & (*time <= limit))
            {
                until += LANES;
            }
            while until < times.len() && (start..=limit).contains(&times[until]) {
                until += 1;
            }
        }
        self.from = until;
        Some(Run { bucket, from, until })
    }
}
