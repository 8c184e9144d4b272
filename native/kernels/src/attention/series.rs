//! The time function of keys that lie behind their queries, as a short series. For keys at times s of [s0, s1] and a query at
//! t >= s1,
//!   f(t - s) = sum_m a_m(t) T_m(x),   x = (2 s - s0 - s1) / (s1 - s0),
//! T_m the Chebyshev polynomials. The coefficients of a query follow from f at as many nodes as there are terms. f is smooth away
//! from a gap of zero, so a few terms are as exact as f itself in single precision, and a block of weights is a product of two narrow
//! matrices: queries by terms and terms by keys. All three functions that the gradients need have the same polynomials.
//!
//! Coefficients that do not fade show that a series is too short. This decides which queries of a block it serves: the last
//! ones, from [`Series::first`] on. Those right after the keys may need all pairs.

use super::TimeBias;
use super::bias::BlockPair;
use super::plan::BLOCK;
use super::power::{Power, ROOM, Row, WEIGHTS};
use crate::simd::tile::MR;
use crate::simd::{LANES, Simd};
use std::f64::consts::PI;
use std::sync::OnceLock;

/// Numbers of terms, multiples of a tile's rows.
const TERMS: [usize; 2] = [12, 24];
pub const MOST_TERMS: usize = TERMS[1];
/// Queries that are served together or not: whole tiles and whole vectors.
const STEP: usize = 24;
/// Floats of a series, and of the values that it is computed from.
pub const SERIES: usize = (WEIGHTS + 1) * MOST_TERMS * BLOCK;
pub const VALUES: usize = WEIGHTS * MOST_TERMS * BLOCK;
/// Queries are at least this part of the keys' span behind the last key: coefficients fade by a factor of 1.6 or more per term
/// from there on, so the last one bounds all that are left out.
const APART: f64 = 1.0 / 16.0;
/// Largest last coefficient: as a part of the function's largest value in the block, and as a part of its scale, for values whose
/// own rounding error is larger.
const FADED: f32 = 5e-7;
const NOTHING: f32 = 6e-8;

/// See the module header.
#[derive(Clone, Copy)]
pub struct Series {
    pub terms: usize,
    /// Factor of the time term, not in the coefficients.
    pub alpha: f32,
    /// The first query of the block pair that it serves, a multiple of [`MR`].
    pub first: usize,
    pub coefficients: *const f32, // [functions][terms][BLOCK]: of queries, and some beyond the last
    pub polynomials: *const f32,  // [terms][BLOCK]: of keys
}

/// Where a series is written.
#[derive(Clone, Copy)]
pub struct Room {
    /// 1: only the function itself; [`WEIGHTS`]: also those for its gradients.
    pub functions: usize,
    pub series: *mut f32, // [SERIES]
    pub values: *mut f32, // [VALUES]
}

/// Nodes and the matrix from values at the nodes to coefficients.
struct Nodes {
    at: [f64; MOST_TERMS],
    matrix: [[f32; MOST_TERMS]; MOST_TERMS], // [node][term]
}

impl Nodes {
    fn get(terms: usize) -> &'static Nodes {
        static TABLES: [OnceLock<Nodes>; TERMS.len()] = [const { OnceLock::new() }; TERMS.len()];
        TABLES[usize::from(terms == MOST_TERMS)].get_or_init(|| Nodes::new(terms))
    }

    fn new(terms: usize) -> Nodes {
        let mut nodes = Nodes {
            at: [0.0; MOST_TERMS],
            matrix: [[0.0; MOST_TERMS]; MOST_TERMS],
        };
        for node in 0..terms {
            let angle = (node as f64 + 0.5) * PI / terms as f64;
            nodes.at[node] = angle.cos();
            for term in 0..terms {
                let share = if term == 0 { 1.0 } else { 2.0 } / terms as f64;
                nodes.matrix[node][term] = (share * (term as f64 * angle).cos()) as f32;
            }
        }
        nodes
    }
}

/// The times of a block pair as a series sees them.
struct Span<'a> {
    keys: &'a [i64],
    queries: &'a [i64],
    earliest: i64,
    latest: i64,
    half: f64,
}

impl Series {
    /// The series of a block pair, if it saves work: all keys are visible, and it serves enough of the queries.
    ///
    /// # Safety
    /// This CPU has `V`'s instructions; the room is the caller's own; `pair` lies within the batch that `time` describes.
    #[inline(always)]
    pub unsafe fn of<V: Simd>(power: &Power, time: &TimeBias, pair: &BlockPair, room: Room) -> Option<Series> {
        if pair.visible(0) < pair.keys {
            return None;
        }
        let (key, query) = (pair.token + pair.key, pair.token + pair.query);
        let (keys, queries) = (
            &time.times[key..key + pair.keys],
            &time.query_times[query..query + pair.queries],
        );
        let (earliest, latest) = (*keys.iter().min()?, *keys.iter().max()?);
        let half = (latest - earliest) as f64 / 2.0;
        let span = Span {
            keys,
            queries,
            earliest,
            latest,
            half,
        };
        for terms in TERMS {
            // SAFETY: by this function's contract.
            let series = unsafe { Series::with_terms::<V>(power, &span, terms, room) };
            let served = pair.queries.saturating_sub(series.first);
            if series.first > 0 && terms < MOST_TERMS || 2 * terms * (pair.keys + served) > pair.keys * served {
                continue;
            }
            // SAFETY: by this function's contract.
            unsafe { span.polynomials(terms, room.series.add(room.functions * terms * BLOCK)) };
            return Some(series);
        }
        None
    }

    /// # Safety
    /// As [`Series::of`].
    #[inline(always)]
    unsafe fn with_terms<V: Simd>(power: &Power, span: &Span, terms: usize, room: Room) -> Series {
        let (nodes, each) = (Nodes::get(terms), terms * BLOCK);
        let count = span.queries.len().next_multiple_of(STEP);
        let (mut gaps, mut row) = ([0.0; ROOM], Row::new());
        // SAFETY: by this function's contract.
        unsafe {
            for (node, at) in nodes.at[..terms].iter().enumerate() {
                let node_time = span.half + span.half * at;
                for (gap, query) in gaps.iter_mut().zip(span.queries) {
                    *gap = (((query - span.earliest) as f64 - node_time) * f64::from(power.inverse_unit)) as f32;
                }
                power.evaluate_gaps::<V>(&gaps, count, &mut row);
                keep::<V>(&row, count, room, room.values.add(node * BLOCK), each);
            }
            for function in 0..room.functions {
                let (values, to) = (room.values.add(function * each), room.series.add(function * each));
                transform::<V>(values, nodes, terms, count, to);
            }
            let mut first = count;
            while first > 0 && serves::<V>(power, span, terms, room, first - STEP) {
                first -= STEP;
            }
            Series {
                terms,
                first,
                alpha: power.alpha,
                coefficients: room.series,
                polynomials: room.series.add(room.functions * each),
            }
        }
    }
}

impl Span<'_> {
    /// Writes the polynomials of the keys.
    ///
    /// # Safety
    /// `to` has room for `terms` rows of [`BLOCK`].
    #[inline(always)]
    unsafe fn polynomials(&self, terms: usize, to: *mut f32) {
        for (at, key) in self.keys.iter().enumerate() {
            let x = match self.half > 0.0 {
                true => ((key - self.earliest) as f64 - self.half) / self.half,
                false => 0.0,
            };
            let (mut before, mut now) = (x, 1.0);
            for term in 0..terms {
                // SAFETY: by this function's contract.
                unsafe { *to.add(term * BLOCK + at) = now as f32 };
                (before, now) = (now, 2.0 * x * now - before);
            }
        }
    }
}

/// Writes the functions of a row, `each` floats apart: E, P E and E P log2(T).
///
/// # Safety
/// This CPU has `V`'s instructions; `count <= BLOCK`, and there is room for `count` rounded up to 8.
#[inline(always)]
unsafe fn keep<V: Simd>(row: &Row, count: usize, room: Room, to: *mut f32, each: usize) {
    for at in (0..count).step_by(LANES) {
        // SAFETY: by this function's contract.
        unsafe {
            let value = V::load(row.values.as_ptr().add(at));
            value.store(to.add(at));
            if room.functions == WEIGHTS {
                let by_gamma = value.mul(V::load(row.powers.as_ptr().add(at)));
                by_gamma.store(to.add(each + at));
                let by_beta = by_gamma.mul(V::load(row.logs.as_ptr().add(at)));
                by_beta.store(to.add(2 * each + at));
            }
        }
    }
}

/// Coefficients from values at the nodes, both `[terms][BLOCK]`, for `count` queries in whole vectors.
///
/// # Safety
/// This CPU has `V`'s instructions; the operands hold the terms.
#[inline(always)]
unsafe fn transform<V: Simd>(values: *const f32, nodes: &Nodes, terms: usize, count: usize, to: *mut f32) {
    for at in (0..count).step_by(LANES) {
        for term in (0..terms).step_by(MR) {
            // SAFETY: by this function's contract.
            unsafe {
                let mut sums = [V::zero(); MR];
                for (node, shares) in nodes.matrix[..terms].iter().enumerate() {
                    let value = V::load(values.add(node * BLOCK + at));
                    for (sum, share) in sums.iter_mut().zip(&shares[term..term + MR]) {
                        *sum = V::splat(*share).fma(value, *sum);
                    }
                }
                for (i, sum) in sums.into_iter().enumerate() {
                    sum.store(to.add((term + i) * BLOCK + at));
                }
            }
        }
    }
}

/// Whether the series serves the [`STEP`] queries from `first`: all are behind the keys, and the last two coefficients have faded.
///
/// # Safety
/// As [`Series::of`], with values and coefficients computed.
#[inline(always)]
unsafe fn serves<V: Simd>(power: &Power, span: &Span, terms: usize, room: Room, first: usize) -> bool {
    let queries = &span.queries[first..span.queries.len().min(first + STEP)];
    let apart = (2.0 * span.half * APART).ceil() as i64;
    if queries.iter().any(|query| query - span.latest < apart) {
        return false;
    }
    for function in 0..room.functions {
        // E is at most 1. The others are E times a factor, and at most of the size of 1 / ln(gamma).
        let most = if function == 0 { 1.0 } else { -1.0 / power.rate };
        for at in (first..first + queries.len()).step_by(LANES) {
            // SAFETY: by this function's contract.
            unsafe {
                let (mut largest, mut factor, mut last) = (V::zero(), V::zero(), V::zero());
                for term in 0..terms {
                    let (term_at, at) = (term * BLOCK + at, (function * terms + term) * BLOCK + at);
                    let value = size(V::load(room.values.add(at)));
                    largest = largest.max(value);
                    factor = factor.max(value.div(V::load(room.values.add(term_at))));
                    if term + 2 >= terms {
                        last = last.max(size(V::load(room.series.add(at))));
                    }
                }
                let scale = factor.min(V::splat(most));
                let limit = largest.fma(V::splat(FADED), scale.mul(V::splat(NOTHING)));
                if last.sub(limit).lanes_max() > 0.0 {
                    return false;
                }
            }
        }
    }
    true
}

/// |x|.
///
/// # Safety
/// This CPU has `V`'s instructions.
#[inline(always)]
unsafe fn size<V: Simd>(x: V) -> V {
    // SAFETY: by this function's contract.
    unsafe { x.max(V::zero().sub(x)) }
}
