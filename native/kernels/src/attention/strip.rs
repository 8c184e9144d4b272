//! The relative bias of a strip of queries against a block of keys, computed once for all heads of a group, and the
//! reverse: summing a strip of score gradients into the gradients of the bias tables.
//!
//! Along a row the position term is contiguous in its table, and the time term is constant over runs of keys: times
//! usually ascend, so a run's end is found by comparing times with one limit instead of taking a bucket for every pair.

use super::Bias;
use super::bucket::Buckets;
use super::plan::BLOCK;
use super::table_grads::Partial;
use super::tile::MR;
use crate::arena::Lease;
use crate::ctx::Ctx;
use crate::simd::{LANES, Simd};

/// Queries of a strip.
pub const STRIP: usize = 96;
/// Floats of a strip; rows are [`BLOCK`] apart, and whole vectors may be written past a row's end.
pub const STRIP_FLOATS: usize = STRIP * BLOCK + LANES;

/// A bias made ready for strips: the past half of `pos_w`, with slack behind it for whole vectors.
pub struct Tables<'a> {
    past: Lease<'a, f32>,
    bias: Bias<'a>,
    n: usize,
}

/// Which queries and keys of one sequence: `queries` (at most [`STRIP`]) from position `query`, `keys` from `key`.
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
    /// Keys of the window that the query `row` sees.
    #[inline(always)]
    pub fn visible(&self, row: usize) -> usize {
        (self.query + row + 1).saturating_sub(self.key).min(self.keys)
    }
}

/// The terms of the bias wanted in a strip.
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

    /// Fills a strip with the bias of a window. Keys a query does not see are left as they are; rows between the last
    /// query and the next multiple of 6 are zero.
    #[inline(always)]
    pub unsafe fn fill<V: Simd>(&self, window: &Window, term: Term, strip: *mut f32) {
        unsafe {
            for row in 0..window.queries {
                let (to, visible) = (strip.add(row * BLOCK), window.visible(row));
                let past = self
                    .past
                    .as_ptr()
                    .wrapping_add(window.key + self.n - 1 - (window.query + row));
                let position = |at: usize| {
                    if term == Term::Time {
                        V::zero()
                    } else {
                        V::load(past.add(at))
                    }
                };
                if term == Term::Position || self.bias.time.is_none() {
                    for at in (0..visible).step_by(LANES) {
                        position(at).store(to.add(at));
                    }
                    continue;
                }
                self.runs(window, row, |bucket, from, until| {
                    let time = V::splat(*self.time_table().get_unchecked(bucket));
                    for at in (from..until).step_by(LANES) {
                        position(at).add(time).store(to.add(at));
                    }
                });
            }
            for row in window.queries..window.queries.next_multiple_of(MR) {
                std::slice::from_raw_parts_mut(strip.add(row * BLOCK), window.keys).fill(0.0);
            }
        }
    }

    fn time_table(&self) -> &[f32] {
        self.bias.time.as_ref().map_or(&[], |time| time.ts_w)
    }

    /// Calls `emit(bucket, from, until)` for the runs of equal buckets among the keys that a query sees, left to right.
    #[inline(always)]
    fn runs(&self, window: &Window, row: usize, mut emit: impl FnMut(usize, usize, usize)) {
        let Some(time) = &self.bias.time else { return };
        let visible = window.visible(row);
        if visible == 0 {
            return;
        }
        let first = window.token + window.key;
        let times = &time.times[first..first + visible];
        let now = time.query_times[window.token + window.query + row];
        let buckets = Buckets::get();
        let mut from = 0;
        while from < visible {
            let gap = now - times[from];
            let bucket = buckets.of(gap);
            let mut until = from + 1;
            if gap >= 0 {
                // Later keys stay in the bucket while their time lies in [times[from], limit].
                let limit = now - buckets.least(bucket);
                let stays = |time: i64| (time >= times[from]) & (time <= limit);
                while until < visible && stays(times[until]) {
                    until += 1;
                }
            }
            emit(bucket, from, until);
            from = until;
        }
    }

    /// Adds a strip of score gradients to the partial sums of a task. `origin` is the distance (key - query) of the
    /// first tokens of the task's blocks.
    #[inline(always)]
    pub unsafe fn scatter<V: Simd>(
        &self,
        window: &Window,
        term: Term,
        strip: *const f32,
        partial: &Partial,
        origin: isize,
    ) {
        unsafe {
            for row in 0..window.queries {
                let (ds, visible) = (strip.add(row * BLOCK), window.visible(row));
                if term != Term::Time {
                    let distance = window.key as isize - (window.query + row) as isize;
                    let to = partial.position.offset(distance - origin + BLOCK as isize - 1);
                    for at in (0..visible).step_by(LANES) {
                        let to = to.add(at);
                        V::load(to).add(V::load_upto(ds.add(at), visible - at)).store(to);
                    }
                }
                if term != Term::Position {
                    self.runs(window, row, |bucket, from, until| {
                        let mut sum = V::zero();
                        for at in (from..until).step_by(LANES) {
                            sum = sum.add(V::load_upto(ds.add(at), until - at));
                        }
                        *partial.time.add(bucket) += f64::from(sum.sum());
                    });
                }
            }
        }
    }
}
