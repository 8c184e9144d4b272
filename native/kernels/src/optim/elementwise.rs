//! `y += a x`, exponential moving average, and conversion between f32 and FP16.

use super::TILE;
use crate::ctx::Ctx;
use crate::fault::Outcome;
use crate::mat::Disjoint;
use crate::rows::{Element, load_vector, store_vector};
use crate::shape::check_len;
use crate::simd::{Kernel, LANES, Simd, dispatch};

/// `y += a x`.
pub fn add(cx: &Ctx, a: f32, x: &[f32], y: &mut [f32]) -> Outcome {
    check_len("add", "x", x.len(), y.len())?;
    combine(cx, Pass::Add(a), x, y);
    Ok(())
}

/// `y += (x - y) w`: with `w = 1 - decay` an exponential moving average of `x`.
pub fn lerp(cx: &Ctx, w: f32, x: &[f32], y: &mut [f32]) -> Outcome {
    check_len("lerp", "x", x.len(), y.len())?;
    combine(cx, Pass::Lerp(w), x, y);
    Ok(())
}

/// To FP16 bits, nearest even; beyond 65504 becomes infinity.
pub fn cast_to_f16(cx: &Ctx, x: &[f32], y: &mut [u16]) -> Outcome {
    check_len("cast_to_f16", "x", x.len(), y.len())?;
    combine(cx, Pass::Copy, x, y);
    Ok(())
}

pub fn cast_to_f32(cx: &Ctx, x: &[u16], y: &mut [f32]) -> Outcome {
    check_len("cast_to_f32", "x", x.len(), y.len())?;
    combine(cx, Pass::Copy, x, y);
    Ok(())
}

#[derive(Clone, Copy)]
enum Pass {
    Copy,
    Add(f32),
    Lerp(f32),
}

fn combine<X: Element, Y: Element>(cx: &Ctx, pass: Pass, x: &[X], y: &mut [Y]) {
    let len = y.len();
    let y = Disjoint::new(y);
    cx.pool.run(len.div_ceil(TILE), |task, _| {
        let from = task * TILE;
        let to = len.min(from + TILE);
        // SAFETY: tasks own disjoint ranges; `isa` is this CPU's.
        unsafe {
            dispatch(
                cx.isa,
                Combine {
                    pass,
                    x: &x[from..to],
                    y: y.range(from, to - from),
                },
            )
        };
    });
}

struct Combine<'a, X, Y> {
    pass: Pass,
    x: &'a [X],
    y: &'a mut [Y],
}

impl<X: Element, Y: Element> Kernel for Combine<'_, X, Y> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        let len = self.y.len();
        let to = self.y.as_mut_ptr();
        for k in 0..len.div_ceil(LANES) {
            // SAFETY: vector `k` of both slices, the last one in part.
            unsafe {
                let x: V = load_vector(self.x.as_ptr(), k, len);
                let y = match self.pass {
                    Pass::Copy => x,
                    Pass::Add(a) => x.fma(V::splat(a), load_vector(to.cast_const(), k, len)),
                    Pass::Lerp(w) => {
                        let y: V = load_vector(to.cast_const(), k, len);
                        x.sub(y).fma(V::splat(w), y)
                    }
                };
                store_vector(y, to, k, len);
            }
        }
    }
}
