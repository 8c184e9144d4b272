//! The time term as a function: b_ij = alpha * gamma^(T^beta), T = |query_times[i] - times[j]| / unit (FuXi-gamma,
//! arXiv 2512.12740). No table and no bucket. beta > 0 and 0 < gamma < 1 are learned through
//! `beta = softplus(weights[1])` and `gamma = sigmoid(weights[2])`; alpha is `weights[0]`.
//!
//! With P = T^beta and E = gamma^P:
//!   d/dalpha = E        d/dgamma = alpha P E / gamma        d/dbeta = alpha ln(gamma) E P ln(T), 0 at T = 0

use super::TimeBias;
use super::bias::BlockPair;
use super::plan::BLOCK;
use super::table_grads::Partial;
use crate::simd::{Elements, LANES, LINE, Simd};
use std::f64::consts::LN_2;

/// Learned numbers of the function.
pub const WEIGHTS: usize = 3;
/// log2 of the value that represents a zero gap.
const NO_GAP: f32 = -126.0;

/// The function with its constants.
#[derive(Clone, Copy)]
pub struct Power {
    pub alpha: f32,
    beta: f32,
    /// log2(gamma), negative.
    pub rate: f32,
    pub inverse_unit: f32,
    /// Derivatives for the chain rule.
    beta_slope: f64,
    gamma: f64,
    ln_gamma: f64,
}

/// Sums over pairs of a score gradient times E, P E and E P log2(T).
#[derive(Clone, Copy, Default)]
pub struct PowerSums(pub [f64; WEIGHTS]);

/// Keys of a block pair, and slack so that whole vectors can be read.
pub const ROOM: usize = BLOCK + LINE;

/// Times of the keys of a block pair. Times within 2^31 of each other are stored as 32-bit offsets from the earliest, with which
/// a gap takes a third of the instructions; the result is the same float.
pub struct Keys {
    times: Times,
    earliest: i64,
}

#[expect(
    clippy::large_enum_variant,
    reason = "lives on the stack of one task; a box would allocate per pair"
)]
enum Times {
    Near([i32; ROOM]),
    Far([i64; ROOM]),
}

impl Keys {
    pub fn new(time: &TimeBias, pair: &BlockPair) -> Keys {
        let (key, query) = (pair.token + pair.key, pair.token + pair.query);
        let times = &time.times[key..key + pair.keys];
        let all = || times.iter().chain(&time.query_times[query..query + pair.queries]);
        let (earliest, latest) = (all().min().copied().unwrap_or(0), all().max().copied().unwrap_or(0));
        if latest - earliest <= i64::from(i32::MAX) {
            let mut near = [0; ROOM];
            near.iter_mut()
                .zip(times)
                .for_each(|(near, time)| *near = (time - earliest) as i32);
            return Keys {
                times: Times::Near(near),
                earliest,
            };
        }
        let mut far = [0; ROOM];
        far[..times.len()].copy_from_slice(times);
        Keys {
            times: Times::Far(far),
            earliest,
        }
    }

    /// Gaps between `now` and the eight keys from `at`.
    ///
    /// # Safety
    /// This CPU has `V`'s instructions; `at + LANES <= ROOM`.
    #[inline(always)]
    unsafe fn gaps<V: Simd>(&self, now: i64, at: usize) -> V {
        // SAFETY: by this function's contract.
        unsafe {
            match &self.times {
                Times::Near(times) => V::near_gaps((now - self.earliest) as i32, times.as_ptr().add(at)),
                Times::Far(times) => V::gaps(now, times.as_ptr().add(at)),
            }
        }
    }
}

/// log2(T), P and E of the keys of a block pair as one query sees them.
#[derive(Clone, Copy)]
pub struct Row {
    pub logs: [f32; ROOM],
    pub powers: [f32; ROOM],
    pub values: [f32; ROOM],
}

impl Row {
    pub fn new() -> Row {
        Row {
            logs: [0.0; ROOM],
            powers: [0.0; ROOM],
            values: [0.0; ROOM],
        }
    }

    /// Takes the logarithms of gaps in units of time.
    ///
    /// # Safety
    /// This CPU has `V`'s instructions; `at + LINE <= ROOM`.
    #[inline(always)]
    unsafe fn take_logs<V: Simd>(&mut self, at: usize, gaps: V::Line) {
        // SAFETY: by this function's contract.
        unsafe {
            let [log] = Elements::log2([gaps.max(V::Line::constant(f32::MIN_POSITIVE))]);
            log.store(self.logs.as_mut_ptr().add(at));
        }
    }
}

impl Power {
    pub fn new(weights: &[f32], unit: f32) -> Power {
        let [alpha, beta, gamma] = [weights[0], weights[1], weights[2]].map(f64::from);
        let ln_gamma = -softplus(-gamma);
        Power {
            alpha: alpha as f32,
            beta: softplus(beta) as f32,
            rate: (ln_gamma / LN_2) as f32,
            inverse_unit: 1.0 / unit,
            beta_slope: sigmoid(beta),
            gamma: ln_gamma.exp(),
            ln_gamma,
        }
    }

    /// Fills a row for the first `visible` keys at query time `now`, in whole vectors. One function after the other, each over the
    /// whole row: the combined dependency chain is so long that a core would overlap only two vectors, and stall.
    ///
    /// # Safety
    /// This CPU has `V`'s instructions; `visible <= BLOCK`.
    #[inline(always)]
    pub unsafe fn evaluate<V: Simd>(&self, keys: &Keys, now: i64, visible: usize, row: &mut Row) {
        // SAFETY: by this function's contract; a row is padded to whole vectors.
        unsafe {
            for at in (0..visible).step_by(LINE) {
                let gaps = V::line(keys.gaps(now, at), keys.gaps(now, at + LANES));
                row.take_logs::<V>(at, gaps.mul(V::Line::constant(self.inverse_unit)));
            }
            self.finish::<V>(visible, row);
        }
    }

    /// Fills a row for gaps in units of time, in whole vectors.
    ///
    /// # Safety
    /// This CPU has `V`'s instructions; `count <= BLOCK`.
    #[inline(always)]
    pub unsafe fn evaluate_gaps<V: Simd>(&self, gaps: &[f32; ROOM], count: usize, row: &mut Row) {
        // SAFETY: by this function's contract; a row is padded to whole vectors.
        unsafe {
            for at in (0..count).step_by(LINE) {
                row.take_logs::<V>(at, V::Line::load(gaps.as_ptr().add(at)));
            }
            self.finish::<V>(count, row);
        }
    }

    /// P and E of the first `visible` entries of a row from their logarithms.
    ///
    /// # Safety
    /// As [`Power::evaluate`].
    #[inline(always)]
    unsafe fn finish<V: Simd>(&self, visible: usize, row: &mut Row) {
        // SAFETY: by this function's contract; a row is padded to whole vectors.
        unsafe {
            for at in (0..visible).step_by(LINE) {
                let log = V::Line::load(row.logs.as_ptr().add(at));
                let [power] = Elements::exp2_clamped([log.mul(V::Line::constant(self.beta))]);
                let power = power.where_positive(log.sub(V::Line::constant(NO_GAP)));
                power.store(row.powers.as_mut_ptr().add(at));
            }
            for at in (0..visible).step_by(LINE) {
                let power = V::Line::load(row.powers.as_ptr().add(at));
                let exponent = power.mul(V::Line::constant(self.rate)).max(V::Line::constant(-126.0));
                let [value] = Elements::exp2([exponent]);
                value.store(row.values.as_mut_ptr().add(at));
            }
        }
    }

    /// Writes the terms of the first `visible` keys of an evaluated row to `to`, plus `past` unless it is null. Whole vectors are written.
    ///
    /// # Safety
    /// This CPU has `V`'s instructions; `visible <= BLOCK`; `past` (unless null) and `to` have room for `visible` rounded up to 8.
    #[inline(always)]
    pub unsafe fn fill<V: Simd>(&self, row: &Row, visible: usize, past: *const f32, to: *mut f32) {
        for at in (0..visible).step_by(LANES) {
            // SAFETY: by this function's contract.
            unsafe {
                let value = V::load(row.values.as_ptr().add(at));
                let term = match past.is_null() {
                    true => value.mul(V::constant(self.alpha)),
                    false => value.fma(V::constant(self.alpha), V::load(past.wrapping_add(at))),
                };
                term.store(to.add(at));
            }
        }
    }

    /// Gradients of the three learned numbers from the sums over all pairs.
    pub fn chain(&self, sums: &[f64]) -> [f64; WEIGHTS] {
        let alpha = f64::from(self.alpha);
        let by_beta = alpha * self.ln_gamma * LN_2 * sums[2];
        // d gamma / d weight = gamma (1 - gamma), and gamma divides the sum.
        [sums[0], by_beta * self.beta_slope, alpha * (1.0 - self.gamma) * sums[1]]
    }
}

impl PowerSums {
    /// Adds the sums to a task's own.
    ///
    /// # Safety
    /// `partial` belongs to the running task.
    #[inline(always)]
    pub unsafe fn add_to(&self, partial: &Partial) {
        for (at, sum) in self.0.iter().enumerate() {
            // SAFETY: by this function's contract; a partial has room for BUCKETS sums.
            unsafe { *partial.time.add(at) += sum };
        }
    }

    /// Adds the score gradients `ds` of the first `visible` keys of an evaluated row.
    ///
    /// # Safety
    /// This CPU has `V`'s instructions; `visible <= BLOCK`; `ds` holds `visible` floats.
    #[inline(always)]
    pub unsafe fn add<V: Simd>(&mut self, row: &Row, visible: usize, ds: *const f32) {
        // SAFETY: by this function's contract.
        unsafe {
            let mut sums = [V::zero(); WEIGHTS];
            for at in (0..visible).step_by(LANES) {
                let by_alpha = V::load_upto(ds.add(at), visible - at).mul(V::load(row.values.as_ptr().add(at)));
                let by_gamma = by_alpha.mul(V::load(row.powers.as_ptr().add(at)));
                sums[0] = sums[0].add(by_alpha);
                sums[1] = sums[1].add(by_gamma);
                sums[2] = by_gamma.fma(V::load(row.logs.as_ptr().add(at)), sums[2]);
            }
            for (to, sum) in self.0.iter_mut().zip(sums) {
                *to += f64::from(sum.sum());
            }
        }
    }
}

/// ln(1 + e^x) without overflow.
pub fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}
