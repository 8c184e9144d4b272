//! `y[T, D] = x / max(|x|, eps)`. Rows shorter than `eps` are only scaled, in backward too.
//!
//! Letters: T tokens, D width.

use super::norm::check_eps;
use crate::ctx::Ctx;
use crate::fault::Outcome;
use crate::mat::{Grad, Mat, MatMut};
use crate::reduce::BLOCK;
use crate::shape::{check_grad, check_mat, check_mut};
use crate::simd::{LANES, Simd};
use crate::simd_fn;

const OP: &str = "l2_norm";

/// Writes `y`.
#[derive(Clone, Copy)]
pub struct Forward {
    pub x: Mat,
    pub eps: f32,
    pub y: MatMut,
}

/// `dx (+)= (dy - y (y . dy)) / |x|`, or `dy / eps` for a short row.
#[derive(Clone, Copy)]
pub struct Backward {
    pub x: Mat,
    pub eps: f32,
    pub dy: Mat,
    pub dx: Grad,
}

/// `a . b`.
///
/// # Safety
/// Both valid for `n` floats; called from a SIMD entry point.
#[inline(always)]
unsafe fn dot<V: Simd>(a: *const f32, b: *const f32, n: usize) -> f32 {
    // SAFETY: by this function's contract.
    unsafe {
        let mut sums = [V::zero(); 2];
        for at in (0..n).step_by(2 * LANES) {
            for (chain, sum) in sums.iter_mut().enumerate() {
                let at = at + chain * LANES;
                if at < n {
                    *sum = V::load_upto(a.add(at), n - at).fma(V::load_upto(b.add(at), n - at), *sum);
                }
            }
        }
        sums[0].add(sums[1]).sum()
    }
}

/// # Safety
/// This CPU has `V`'s instructions; rows `[first, first + rows)` exist, and this task owns them in the outputs.
#[inline(always)]
unsafe fn forward_body<V: Simd>(f: &Forward, first: usize, rows: usize) {
    // SAFETY: by this function's contract.
    unsafe {
        let d = f.x.cols;
        for i in first..first + rows {
            let (x, y) = (f.x.row(i).as_ptr(), f.y.row(i).as_mut_ptr());
            let scale = V::splat(1.0 / dot::<V>(x, x, d).sqrt().max(f.eps));
            for at in (0..d).step_by(LANES) {
                V::load_upto(x.add(at), d - at).mul(scale).store_upto(y.add(at), d - at);
            }
        }
    }
}
simd_fn!(fn forward_rows = forward_body(f: &Forward, first: usize, rows: usize));

/// See [`Forward`].
pub fn forward(cx: &Ctx, f: Forward) -> Outcome {
    let t = f.x.rows;
    check_mut(OP, "y", f.y, t, f.x.cols)?;
    check_eps(OP, f.eps)?;
    cx.pool.run(t.div_ceil(BLOCK), |block, _| {
        let first = block * BLOCK;
        // SAFETY: blocks of rows are disjoint; shapes are checked.
        unsafe { forward_rows(cx.isa, &f, first, BLOCK.min(t - first)) };
    });
    Ok(())
}

/// # Safety
/// As [`forward_body`].
#[inline(always)]
unsafe fn backward_body<V: Simd>(b: &Backward, first: usize, rows: usize) {
    // SAFETY: by this function's contract.
    unsafe {
        let d = b.x.cols;
        for i in first..first + rows {
            let (x, dy, dx) = (b.x.row(i).as_ptr(), b.dy.row(i).as_ptr(), b.dx.to.row(i).as_mut_ptr());
            let norm = dot::<V>(x, x, d).sqrt();
            let inverse = 1.0 / norm.max(b.eps);
            let along = if norm > b.eps {
                dot::<V>(x, dy, d) * inverse * inverse
            } else {
                0.0
            };
            let (along, inverse) = (V::splat(along), V::splat(inverse));
            for at in (0..d).step_by(LANES) {
                let (left, dx) = (d - at, dx.add(at));
                let g = V::load_upto(x.add(at), left)
                    .fnma(along, V::load_upto(dy.add(at), left))
                    .mul(inverse);
                let g = if b.dx.accumulate {
                    V::load_upto(dx, left).add(g)
                } else {
                    g
                };
                g.store_upto(dx, left);
            }
        }
    }
}
simd_fn!(fn backward_rows = backward_body(b: &Backward, first: usize, rows: usize));

/// See [`Backward`].
pub fn backward(cx: &Ctx, b: Backward) -> Outcome {
    let (t, d) = (b.x.rows, b.x.cols);
    check_mat(OP, "dy", b.dy, t, d)?;
    check_grad(OP, "dx", Some(b.dx), t, d)?;
    check_eps(OP, b.eps)?;
    cx.pool.run(t.div_ceil(BLOCK), |block, _| {
        let first = block * BLOCK;
        // SAFETY: blocks of rows are disjoint; shapes are checked.
        unsafe { backward_rows(cx.isa, &b, first, BLOCK.min(t - first)) };
    });
    Ok(())
}
