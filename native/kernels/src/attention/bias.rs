//! The relative bias of a block of queries against a block of keys, computed once for all heads of a group, and the
//! reverse: summing a block of score gradients into the gradients of the bias tables.
//!
//! Along a row the position term is contiguous in its table; the time term comes from the [`Clock`], or is a function of the
//! gap ([`Power`]).

use super::bucket::BUCKETS;
use super::clock::{BucketRun, Clock, Filed};
use super::plan::BLOCK;
use super::power::{self, Keys, Power};
use super::series::{Room, SERIES, Series};
use super::table_grads::Partial;
use super::{Bias, TimeBias, TimeTerm};
use crate::arena::Lease;
use crate::ctx::Ctx;
use crate::simd::{LANES, Simd};
use std::ops::Range;

/// Floats of a block of biases; rows are [`BLOCK`] apart, and whole vectors may be written past a row's end.
pub const SQUARE: usize = BLOCK * BLOCK + LANES;

/// What [`Tables::fill`] found about a block's queries and [`Tables::scatter`] needs again: a row for each, [`Filed`] or of
/// the function.
pub type Kept = *mut f32; // [BLOCK]

/// A bias prepared for a call: the past half of `pos_w`, padded to whole vectors, and the time term.
pub struct Tables<'a> {
    past: Lease<'a, f32>,
    time: Option<(Time<'a>, TimeBias<'a>)>,
    n: usize,
}

/// The time term prepared for a call.
enum Time<'a> {
    Buckets(Lease<'a, f32>), // [BUCKETS]
    Power(Power),
}

impl<'a> Time<'a> {
    fn new(cx: &'a Ctx, term: TimeTerm) -> Time<'a> {
        match term {
            TimeTerm::Power { weights, unit } => Time::Power(Power::new(weights, unit)),
            TimeTerm::Buckets(weights) => {
                let mut table = cx.scratch::<f32>(BUCKETS);
                let each = covered(weights);
                for (bucket, entry) in table.iter_mut().enumerate() {
                    *entry = weights[bucket / each];
                }
                Time::Buckets(table)
            }
        }
    }
}

/// Number of adjacent buckets per entry of the table.
fn covered(weights: &[f32]) -> usize {
    (BUCKETS - 1) / (weights.len() - 1)
}

/// A pair of blocks of one sequence: `queries` from position `query`, `keys` from `key`, at most [`BLOCK`] each.
#[derive(Clone, Copy)]
pub struct BlockPair {
    /// Batch row of the sequence's first token.
    pub token: usize,
    pub query: usize,
    pub queries: usize,
    pub key: usize,
    pub keys: usize,
}

impl BlockPair {
    pub fn new(token: usize, queries: Range<usize>, keys: Range<usize>) -> BlockPair {
        let seen = keys.len().min(queries.end - keys.start);
        BlockPair {
            token,
            query: queries.start,
            queries: queries.len(),
            key: keys.start,
            keys: seen,
        }
    }

    /// Number of keys of the block pair visible to query `row`.
    #[inline(always)]
    pub fn visible(&self, row: usize) -> usize {
        (self.query + row + 1).saturating_sub(self.key).min(self.keys)
    }
}

/// The requested terms of the bias.
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
        let time = bias.time.map(|time| (Time::new(cx, time.term), time));
        Tables { past, time, n }
    }

    /// Fills a square with the bias of a block pair. Entries of keys that a query does not see are unspecified. `kept`, unless null, receives
    /// what [`Tables::scatter`] needs again.
    ///
    /// # Safety
    /// This CPU has `V`'s instructions; `square` has room for [`SQUARE`] floats and `kept`, unless null, for [`Tables::room_to_keep`];
    /// `pair` lies within the batch that the tables' times describe.
    #[inline(always)]
    pub unsafe fn fill<V: Simd>(&self, pair: &BlockPair, term: Term, square: *mut f32, kept: Kept) {
        let mut clock = match &self.time {
            Some((Time::Power(power), time)) if term != Term::Position => {
                // SAFETY: by this function's contract.
                return unsafe { self.fill_power::<V>(pair, term, (power, time), square, kept) };
            }
            Some((Time::Buckets(table), time)) if term != Term::Position => Some(Clock::new(table, time, pair)),
            _ => None,
        };
        for row in 0..pair.queries {
            let (visible, past) = (pair.visible(row), self.past(pair, row));
            // SAFETY: by this function's contract.
            unsafe {
                let to = square.add(row * BLOCK);
                let Some(clock) = &mut clock else {
                    for at in (0..visible).step_by(LANES) {
                        V::load(past.add(at)).store(to.add(at));
                    }
                    continue;
                };
                clock.show::<V>(row, visible);
                if !kept.is_null() {
                    *kept.cast::<Filed>().add(row) = clock.filed;
                }
                for at in (0..visible).step_by(LANES) {
                    let time = V::load(clock.bias().add(at));
                    let bias = match term {
                        Term::Time => time,
                        _ => V::load(past.add(at)).add(time),
                    };
                    bias.store(to.add(at));
                }
            }
        }
    }

    /// # Safety
    /// As [`Tables::fill`].
    #[inline(always)]
    unsafe fn fill_power<V: Simd>(
        &self,
        pair: &BlockPair,
        term: Term,
        (power, time): (&Power, &TimeBias),
        square: *mut f32,
        kept: Kept,
    ) {
        let (keys, mut own) = (Keys::new(time, pair), power::Row::new());
        for row in 0..pair.queries {
            let past = match term {
                Term::Time => std::ptr::null(),
                _ => self.past(pair, row),
            };
            let (now, visible) = (time.query_times[pair.token + pair.query + row], pair.visible(row));
            // SAFETY: by this function's contract.
            unsafe {
                let terms = match kept.is_null() {
                    true => &mut own,
                    false => &mut *kept.cast::<power::Row>().add(row),
                };
                power.evaluate::<V>(&keys, now, visible, terms);
                power.fill::<V>(terms, visible, past, square.add(row * BLOCK));
            }
        }
    }

    /// The position terms of a query, from the block pair's first key on.
    #[inline(always)]
    fn past(&self, pair: &BlockPair, row: usize) -> *const f32 {
        self.past
            .as_ptr()
            .wrapping_add(pair.key + self.n - 1 - (pair.query + row))
    }

    /// Floats that [`Tables::fill`] keeps for a block pair.
    pub fn room_to_keep(&self) -> usize {
        let row = match &self.time {
            None => 0,
            Some((Time::Buckets(_), _)) => size_of::<Filed>(),
            Some((Time::Power(_), _)) => size_of::<power::Row>(),
        };
        BLOCK * row / size_of::<f32>()
    }

    /// Floats of a [`Series`]; none if the time term never has one.
    pub fn room_for_series(&self) -> usize {
        match &self.time {
            Some((Time::Power(_), _)) => SERIES,
            _ => 0,
        }
    }

    /// The time term of a block pair as a series, if it is a function and has one that saves work.
    ///
    /// # Safety
    /// As [`Series::of`].
    #[inline(always)]
    pub unsafe fn series<V: Simd>(&self, pair: &BlockPair, room: Room) -> Option<Series> {
        match &self.time {
            // SAFETY: by this function's contract.
            Some((Time::Power(power), time)) => unsafe { Series::of::<V>(power, time, pair, room) },
            _ => None,
        }
    }

    pub fn has_time(&self) -> bool {
        self.time.is_some()
    }

    /// Adds a square of score gradients to the partial sums of a task.
    ///
    /// # Safety
    /// As [`Tables::fill`], which filled `kept` for the same `pair` and `term`; `partial` belongs to the
    /// running task.
    #[inline(always)]
    pub unsafe fn scatter<V: Simd>(
        &self,
        pair: &BlockPair,
        term: Term,
        square: *const f32,
        kept: Kept,
        partial: &Partial,
    ) {
        let is_power = matches!(&self.time, Some((Time::Power(_), _)));
        let mut sums = power::PowerSums::default();
        for row in 0..pair.queries {
            // SAFETY: by this function's contract.
            unsafe {
                let (ds, visible) = (square.add(row * BLOCK), pair.visible(row));
                if term != Term::Time {
                    let to = partial.position.add(BLOCK - 1 - row);
                    for at in (0..visible).step_by(LANES) {
                        let to = to.add(at);
                        V::load(to).add(V::load_upto(ds.add(at), visible - at)).store(to);
                    }
                }
                if term == Term::Position || !self.has_time() {
                    continue;
                }
                if is_power {
                    sums.add::<V>(&*kept.cast::<power::Row>().add(row), visible, ds);
                    continue;
                }
                for BucketRun { bucket, from, until } in (*kept.cast::<Filed>().add(row)).runs::<V>(visible) {
                    let (whole, left) = ((until - from) / LANES, (until - from) % LANES);
                    let mut sum = V::zero();
                    for vector in 0..whole {
                        sum = sum.add(V::load(ds.add(from + vector * LANES)));
                    }
                    sum = sum.add(V::load_part(ds.add(from + whole * LANES), left));
                    *partial.time.add(bucket) += f64::from(sum.sum());
                }
            }
        }
        if is_power && term != Term::Position {
            // SAFETY: by this function's contract.
            unsafe { sums.add_to(partial) };
        }
    }

    /// The gradient of the time term's weights, `to[weight] += ...`, from the sums of all tasks.
    pub fn time_gradient(&self, sums: &[f64], to: &mut [f32]) {
        let mut add = |weight: usize, sum: f64| to[weight] = (f64::from(to[weight]) + sum) as f32;
        match &self.time {
            None => {}
            Some((Time::Power(power), _)) => power
                .chain(sums)
                .into_iter()
                .enumerate()
                .for_each(|(w, sum)| add(w, sum)),
            Some((Time::Buckets(_), time)) => {
                let each = covered(time.term.weights());
                sums.chunks(each)
                    .enumerate()
                    .for_each(|(w, sums)| add(w, sums.iter().sum()));
            }
        }
    }
}
