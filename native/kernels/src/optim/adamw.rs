//! AdamW (Loshchilov & Hutter): decoupled weight decay, bias-corrected moments.
//!
//!   m = b1 m + (1 - b1) g      v = b2 v + (1 - b2) g^2
//!   p = p - lr wd p - lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)

use super::TILE;
use crate::ctx::Ctx;
use crate::fault::{FaultKind, Outcome, fault};
use crate::mat::Disjoint;
use crate::rows::{load_vector, store_vector};
use crate::shape::check_len;
use crate::simd::{LANES, Simd};
use crate::simd_fn;

/// Hyper-parameters of all Adam variants; `step` counts from 1.
#[derive(Clone, Copy, Debug)]
pub struct Adam {
    pub lr: f32,
    pub beta1: f32,
    pub beta2: f32,
    pub eps: f32,
    pub weight_decay: f32,
    pub step: u64,
}

impl Adam {
    pub(crate) fn check(&self, op: &'static str) -> Outcome {
        let bad = |input, expected: &str, got: String| Err(fault(FaultKind::Argument, op, input, expected, got));
        if !(0.0..1.0).contains(&self.beta1) || !(0.0..1.0).contains(&self.beta2) {
            let got = format!("{} and {}", self.beta1, self.beta2);
            return bad("beta1, beta2", "numbers in 0..1", got);
        }
        if !(self.eps > 0.0 && self.eps.is_finite()) {
            return bad("eps", "a positive finite number", format!("{}", self.eps));
        }
        if !(self.lr.is_finite() && self.weight_decay.is_finite()) {
            let got = format!("{} and {}", self.lr, self.weight_decay);
            return bad("lr, weight_decay", "finite numbers", got);
        }
        if self.step == 0 {
            return bad("step", "a count from 1", "0".into());
        }
        Ok(())
    }
}

/// Factors that all vectors share, computed once per call in double precision.
#[derive(Clone, Copy)]
pub(crate) struct AdamFactors {
    beta1: f32,
    beta2: f32,
    /// `1 - beta1`, `1 - beta2`
    blend1: f32,
    blend2: f32,
    eps: f32,
    /// `1 - lr * weight_decay`
    keep: f32,
    /// `lr / (1 - beta1^t)`
    rate: f32,
    /// `1 / sqrt(1 - beta2^t)`
    root: f32,
    /// Multiplies the gradient: clipping, loss scaling.
    grad_scale: f32,
}

impl AdamFactors {
    pub fn new(hyper: &Adam, grad_scale: Option<&f32>) -> AdamFactors {
        let step = hyper.step as f64;
        let correction1 = 1.0 - f64::from(hyper.beta1).powf(step);
        let correction2 = 1.0 - f64::from(hyper.beta2).powf(step);
        AdamFactors {
            beta1: hyper.beta1,
            beta2: hyper.beta2,
            blend1: (1.0 - f64::from(hyper.beta1)) as f32,
            blend2: (1.0 - f64::from(hyper.beta2)) as f32,
            eps: hyper.eps,
            keep: (1.0 - f64::from(hyper.lr) * f64::from(hyper.weight_decay)) as f32,
            rate: (f64::from(hyper.lr) / correction1) as f32,
            root: (1.0 / correction2.sqrt()) as f32,
            grad_scale: grad_scale.copied().unwrap_or(1.0),
        }
    }
}

/// New `(p, m, v)` of eight parameters.
///
/// # Safety
/// Target features as for [`Simd`].
#[inline(always)]
pub(crate) unsafe fn adam_vector<V: Simd>(f: &AdamFactors, p: V, g: V, m: V, v: V) -> (V, V, V) {
    // SAFETY: by this function's contract.
    unsafe {
        let g = g.mul(V::splat(f.grad_scale));
        let m = g.fma(V::splat(f.blend1), m.mul(V::splat(f.beta1)));
        let v = g.mul(g).fma(V::splat(f.blend2), v.mul(V::splat(f.beta2)));
        let below = v.sqrt().fma(V::splat(f.root), V::splat(f.eps));
        let p = p.mul(V::splat(f.keep)).sub(m.mul(V::splat(f.rate)).div(below));
        (p, m, v)
    }
}

/// One AdamW step over `p.len()` parameters.
pub struct AdamW<'a> {
    pub p: &'a mut [f32],
    pub g: &'a [f32],
    pub m: &'a mut [f32],
    pub v: &'a mut [f32],
    pub hyper: Adam,
    pub grad_scale: Option<&'a f32>,
}

pub fn adamw(cx: &Ctx, args: AdamW) -> Outcome {
    let op = "adamw";
    let len = args.p.len();
    check_len(op, "g", args.g.len(), len)?;
    check_len(op, "m", args.m.len(), len)?;
    check_len(op, "v", args.v.len(), len)?;
    args.hyper.check(op)?;
    let factors = AdamFactors::new(&args.hyper, args.grad_scale);
    let (p, m, v) = (Disjoint::new(args.p), Disjoint::new(args.m), Disjoint::new(args.v));
    cx.pool.run(len.div_ceil(TILE), |task, _| {
        let from = task * TILE;
        let count = TILE.min(len - from);
        // SAFETY: tasks own disjoint ranges; `isa` is this CPU's.
        unsafe {
            let (p, m, v) = (p.range(from, count), m.range(from, count), v.range(from, count));
            let g = args.g[from..from + count].as_ptr();
            step(
                cx.isa,
                &factors,
                count,
                p.as_mut_ptr(),
                g,
                m.as_mut_ptr(),
                v.as_mut_ptr(),
            );
        }
    });
    Ok(())
}

/// # Safety
/// This CPU has `V`'s instructions; the four arrays hold `len` floats, and nobody else touches what is written.
#[inline(always)]
unsafe fn step_body<V: Simd>(factors: &AdamFactors, len: usize, p: *mut f32, g: *const f32, m: *mut f32, v: *mut f32) {
    // SAFETY: by this function's contract.
    unsafe {
        for k in 0..len.div_ceil(LANES) {
            let (p0, g0) = (load_vector::<V, f32>(p, k, len), load_vector::<V, f32>(g, k, len));
            let (m0, v0) = (load_vector::<V, f32>(m, k, len), load_vector::<V, f32>(v, k, len));
            let (p1, m1, v1) = adam_vector(factors, p0, g0, m0, v0);
            store_vector(p1, p, k, len);
            store_vector(m1, m, k, len);
            store_vector(v1, v, k, len);
        }
    }
}
simd_fn!(fn step = step_body(factors: &AdamFactors, len: usize, p: *mut f32, g: *const f32, m: *mut f32, v: *mut f32));
