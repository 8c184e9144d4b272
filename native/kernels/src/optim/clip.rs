//! Global gradient norm and clipping: `square_sum` of every gradient into one exact sum, then `clip_scale`, whose result the
//! optimisers apply as `grad_scale`, so no pass rewrites the gradients. A gradient may be summed in pieces that begin at
//! multiples of `TILE`, with the same result.

use super::TILE;
use crate::ctx::Ctx;
use crate::exact_sum::ExactSum;
use crate::fault::{FaultKind, Outcome, fault};
use crate::mat::Disjoint;
use crate::rows::load_vector;
use crate::simd::{LANES, Simd};
use crate::simd_fn;

/// Vectors summed in f32 before they are added in f64.
const RUN: usize = 64;

/// `to = sum x^2`, or `to += ...` when accumulating. Tiles are summed in double, and exactly with each other.
pub fn square_sum(cx: &Ctx, x: &[f32], to: &mut ExactSum, accumulate: bool) -> Outcome {
    let tiles = x.len().div_ceil(TILE);
    let mut sums = cx.scratch::<f64>(tiles);
    {
        let sums = Disjoint::new(&mut sums);
        cx.pool.run(tiles, |task, _| {
            let tile = &x[task * TILE..x.len().min((task + 1) * TILE)];
            // SAFETY: each task writes its own sum; `isa` is this CPU's.
            unsafe { sums.range(task, 1)[0] = tile_sum(cx.isa, tile.as_ptr(), tile.len()) };
        });
    }
    if !accumulate {
        *to = ExactSum::ZERO;
    }
    sums.iter().for_each(|sum| to.add(*sum));
    to.carry();
    Ok(())
}

/// # Safety
/// This CPU has `V`'s instructions; `x` holds `len` floats.
#[inline(always)]
unsafe fn tile_sum_body<V: Simd>(x: *const f32, len: usize) -> f64 {
    // SAFETY: by this function's contract.
    unsafe {
        let vectors = len.div_ceil(LANES);
        let mut total = 0.0;
        for from in (0..vectors).step_by(RUN) {
            let mut sums = [V::zero(); 4];
            for k in from..vectors.min(from + RUN) {
                let v = load_vector::<V, f32>(x, k, len);
                sums[k % 4] = v.fma(v, sums[k % 4]);
            }
            total += f64::from(sums[0].add(sums[1]).add(sums[2].add(sums[3])).sum());
        }
        total
    }
}
simd_fn!(fn tile_sum = tile_sum_body(x: *const f32, len: usize) -> f64);

/// `scale = min(1, max_norm / sqrt(square_sum))` of a sum in parts; a non-finite norm is a fault, so nothing is updated.
pub fn clip_scale(parts: &[ExactSum], max_norm: f32, scale: &mut f32) -> Outcome {
    if max_norm.is_nan() || max_norm <= 0.0 {
        let got = format!("{max_norm}");
        return Err(fault(
            FaultKind::Argument,
            "clip_scale",
            "max_norm",
            "a positive number",
            got,
        ));
    }
    let mut total = ExactSum::ZERO;
    parts.iter().for_each(|part| total.merge(part));
    let square_sum = total.value();
    if !square_sum.is_finite() {
        let got = format!("{square_sum}");
        return Err(fault(
            FaultKind::NotFinite,
            "clip_scale",
            "square_sum",
            "a finite gradient norm",
            got,
        ));
    }
    let norm = square_sum.sqrt();
    *scale = if norm > f64::from(max_norm) {
        (f64::from(max_norm) / norm) as f32
    } else {
        1.0
    };
    Ok(())
}
