//! The objective of a token from its logits: the positive's first, then the negatives', padded to whole vectors.
//!
//! `keep` is 1 for a negative that counts and 0 for masked draws, padding and the positive itself. Masked logits are
//! copies of the positive's, so they are harmless. `weights` becomes d loss / d logit.

use crate::simd::{LANES, Simd};

/// Factors `1 + e^-|l|`, each at most 2, multiplied in a lane before a logarithm is taken.
const FACTORS: usize = 64;

/// See `sampled` for the formulas.
#[derive(Clone, Copy)]
pub(super) enum Objective<'a> {
    Softmax { logq: Option<&'a [f32]> },
    Bce { beta: f32 },
}

/// Loss of one token; not finite if a logit is not.
///
/// # Safety
/// The slices have one length, whole vectors; target features as for [`Simd`].
#[inline(always)]
pub(super) unsafe fn softmax<V: Simd>(logits: &[f32], keep: &[f32], weights: &mut [f32]) -> f64 {
    // SAFETY: by this function's contract.
    unsafe {
        let (mut largest, mut poison) = (V::splat(f32::NEG_INFINITY), V::zero());
        for k in (0..logits.len()).step_by(LANES) {
            let logit = V::load(logits.as_ptr().add(k));
            largest = largest.max(logit);
            poison = logit.fma(V::zero(), poison); // NaN once any logit is NaN or infinite
        }
        let largest = largest.lanes_max();
        let mut others = V::zero();
        for k in (0..logits.len()).step_by(LANES) {
            let power = V::load(logits.as_ptr().add(k)).sub(V::splat(largest)).exp();
            let power = power.mul(V::load(keep.as_ptr().add(k)));
            others = others.add(power);
            power.store(weights.as_mut_ptr().add(k));
        }
        let others = f64::from(others.sum());
        let below = f64::from(logits[0] - largest);
        let own = below.exp();
        let total = own + others;
        let inverse = V::splat((1.0 / total) as f32);
        for k in (0..weights.len()).step_by(LANES) {
            let weight = weights.as_mut_ptr().add(k);
            V::load(weight).mul(inverse).store(weight);
        }
        weights[0] = (-others / total) as f32;
        // The first form is accurate for probabilities near 1, the second near 0.
        let loss = if own > 1e-12 {
            (others / own).ln_1p()
        } else {
            total.ln() - below
        };
        loss + f64::from(poison.sum())
    }
}

/// As [`softmax`], for (g)BCE over `count` = 1 + R logits.
///
/// # Safety
/// As [`softmax`].
#[inline(always)]
pub(super) unsafe fn binary<V: Simd>(
    logits: &[f32],
    keep: &[f32],
    weights: &mut [f32],
    beta: f32,
    count: usize,
) -> f64 {
    // SAFETY: by this function's contract.
    unsafe {
        let mean = V::splat(1.0 / count as f32);
        let (mut linear, mut poison) = (V::zero(), V::zero());
        let (mut product, mut factors, mut logarithms) = (V::splat(1.0), 0, 0.0);
        for k in (0..logits.len()).step_by(LANES) {
            let logit = V::load(logits.as_ptr().add(k));
            let keep = V::load(keep.as_ptr().add(k));
            poison = logit.fma(V::zero(), poison);
            // softplus(l) = max(l, 0) + ln(1 + e^-|l|)
            let minus = V::zero().sub(logit);
            linear = logit.max(V::zero()).fma(keep, linear);
            let power = logit.min(minus).exp().mul(keep);
            product = product.mul(V::splat(1.0).add(power));
            logit.sigmoid().mul(keep).mul(mean).store(weights.as_mut_ptr().add(k));
            factors += 1;
            if factors == FACTORS {
                logarithms += logarithm_of_lanes(product);
                (product, factors) = (V::splat(1.0), 0);
            }
        }
        logarithms += logarithm_of_lanes(product);
        let (own, beta) = (f64::from(logits[0]), f64::from(beta));
        weights[0] = (-beta / (1.0 + own.exp()) / count as f64) as f32;
        let own = (-own).max(0.0) + (-own.abs()).exp().ln_1p();
        (beta * own + f64::from(linear.sum()) + logarithms) / count as f64 + f64::from(poison.sum())
    }
}

/// # Safety
/// This CPU has `V`'s instructions.
#[inline(always)]
unsafe fn logarithm_of_lanes<V: Simd>(product: V) -> f64 {
    let mut lanes = [0.0f32; LANES];
    // SAFETY: by this function's contract.
    unsafe { product.store(lanes.as_mut_ptr()) };
    lanes.iter().map(|&lane| f64::from(lane).ln()).sum()
}
