//! One row of a norm, forward and backward. The statistics of a row are `(mean, rstd)` with
//! `norm(x) = (x - mean) * rstd`; RMS norm has mean 0, no norm has `(0, 1)`, so one formula serves all.

use super::Norm;
use crate::simd::{LANES, Simd};

/// Independent sums, to hide the latency of an addition.
const CHAINS: usize = 4;
const STEP: usize = CHAINS * LANES;

/// `sum of x[k]`.
///
/// # Safety
/// This CPU has `V`'s instructions; `x` holds `n` floats.
#[inline(always)]
unsafe fn sum<V: Simd>(x: *const f32, n: usize) -> f32 {
    // SAFETY: by this function's contract.
    unsafe {
        let mut sums = [V::zero(); CHAINS];
        for at in (0..n).step_by(STEP) {
            for (chain, sum) in sums.iter_mut().enumerate() {
                let at = at + chain * LANES;
                if at < n {
                    *sum = sum.add(V::load_upto(x.add(at), n - at));
                }
            }
        }
        sums[0].add(sums[1]).add(sums[2].add(sums[3])).sum()
    }
}

/// `sum of (x[k] - center)^2`.
///
/// # Safety
/// As [`sum`].
#[inline(always)]
unsafe fn square_sum<V: Simd>(x: *const f32, n: usize, center: f32) -> f32 {
    // SAFETY: by this function's contract.
    unsafe {
        let mut sums = [V::zero(); CHAINS];
        let center = V::splat(center);
        for at in (0..n).step_by(STEP) {
            for (chain, sum) in sums.iter_mut().enumerate() {
                let at = at + chain * LANES;
                if at + LANES <= n {
                    let d = V::load(x.add(at)).sub(center);
                    *sum = d.fma(d, *sum);
                } else if at < n {
                    let d = first_lanes(V::load_part(x.add(at), n - at).sub(center), n - at);
                    *sum = d.fma(d, *sum);
                }
            }
        }
        sums[0].add(sums[1]).add(sums[2].add(sums[3])).sum()
    }
}

/// The first `n` lanes, the others zero.
///
/// # Safety
/// This CPU has `V`'s instructions.
#[inline(always)]
unsafe fn first_lanes<V: Simd>(x: V, n: usize) -> V {
    let mut lanes = [0.0; LANES];
    // SAFETY: eight lanes fit.
    unsafe {
        x.store(lanes.as_mut_ptr());
        V::load_part(lanes.as_ptr(), n)
    }
}

/// Mean and reciprocal deviation of a row: two passes over it, the second from cache.
///
/// # Safety
/// `x` is valid for `n` floats; called from a SIMD entry point.
#[inline(always)]
pub unsafe fn row_stats<V: Simd>(norm: Norm, eps: f32, x: *const f32, n: usize) -> [f32; 2] {
    // SAFETY: by this function's contract.
    unsafe {
        let share = 1.0 / n.max(1) as f32;
        let mean = match norm {
            Norm::None => return [0.0, 1.0],
            Norm::Layer => sum::<V>(x, n) * share,
            Norm::Rms => 0.0,
        };
        [mean, 1.0 / (square_sum::<V>(x, n, mean) * share + eps).sqrt()]
    }
}

/// A row whose norm is differentiated.
#[derive(Clone, Copy)]
pub struct NormGrad {
    pub norm: Norm,
    pub x: *const f32,
    pub stats: [f32; 2],
    /// Gradient with respect to `norm(x)`.
    pub g: *const f32,
    pub n: usize,
    pub dx: *mut f32,
    pub accumulate: bool,
}

/// `dx (+)= rstd * (g - mean(g) - norm(x) * mean(g * norm(x)))`, without the first mean for RMS norm.
///
/// # Safety
/// The pointers are valid for `n` floats and `dx` is not `x` or `g`; called from a SIMD entry point.
#[inline(always)]
pub unsafe fn row_norm_grad<V: Simd>(row: NormGrad) {
    // SAFETY: by this function's contract.
    unsafe {
        let NormGrad {
            norm,
            x,
            stats: [mean, rstd],
            g,
            n,
            dx,
            accumulate,
        } = row;
        let (mean, rstd) = (V::splat(mean), V::splat(rstd));
        let (mut sums, mut dots) = ([V::zero(); 2], [V::zero(); 2]);
        if norm != Norm::None {
            for at in (0..n).step_by(2 * LANES) {
                for chain in 0..2 {
                    let at = at + chain * LANES;
                    if at < n {
                        let g = V::load_upto(g.add(at), n - at); // zero beyond the row, so nothing is added there
                        let xhat = V::load_upto(x.add(at), n - at).sub(mean).mul(rstd);
                        sums[chain] = sums[chain].add(g);
                        dots[chain] = g.fma(xhat, dots[chain]);
                    }
                }
            }
        }
        let share = 1.0 / n.max(1) as f32;
        let mean_g = if norm == Norm::Layer {
            sums[0].add(sums[1]).sum() * share
        } else {
            0.0
        };
        let mean_g = V::splat(mean_g);
        let mean_dot = V::splat(dots[0].add(dots[1]).sum() * share);
        for at in (0..n).step_by(LANES) {
            let left = n - at;
            let xhat = V::load_upto(x.add(at), left).sub(mean).mul(rstd);
            let d = xhat.fnma(mean_dot, V::load_upto(g.add(at), left).sub(mean_g)).mul(rstd);
            let to = dx.add(at);
            let d = if accumulate { V::load_upto(to, left).add(d) } else { d };
            d.store_upto(to, left);
        }
    }
}
