//! `y[T, D] = (silu(h1) * h3) W[m, D] + x[T, D]` with `h[T, 2m] = [h1 | h3]`: the second half of a SwiGLU feed-forward.
//!
//! Letters: T tokens, m inner width, D output width.

use super::pack_weight::{backward_weight, forward_weight};
use super::sources::SwiGlu;
use super::store::Residual;
use crate::ctx::Ctx;
use crate::fault::Outcome;
use crate::gemm::{Finish, Shape, multiply, outer};
use crate::mat::{Grad, Mat, MatMut};
use crate::panels::Panels;
use crate::rng::Dropout;
use crate::shape::{check_grad, check_mat, check_mut};
use crate::simd::tile::MR;
use crate::simd::{Elements, LINE, Simd};

const OP: &str = "swiglu_linear_residual";

/// Forward: writes `y`, which may be `x` itself.
#[derive(Clone, Copy)]
pub struct Forward {
    pub h: Mat,
    pub w: Panels,
    pub x: Mat,
    pub y: MatMut,
}

/// Backward of the same call; the gradient of `x` is `dy` itself.
#[derive(Clone, Copy)]
pub struct Backward {
    pub h: Mat,
    /// `W[M, D]` in rows, or `W^T[D, M]` in panels.
    pub w: Panels,
    pub dy: Mat,
    pub dh: Grad,
    pub dw: Grad,
}

/// See [`Forward`].
pub fn forward(cx: &Ctx, f: Forward) -> Outcome {
    let (t, m, d) = (f.h.rows, f.w.rows, f.w.cols);
    check_mat(OP, "h", f.h, t, 2 * m)?;
    let right = forward_weight(OP, f.w, m, d)?;
    check_mat(OP, "x", f.x, t, d)?;
    check_mut(OP, "y", f.y, t, d)?;
    let finish = Residual {
        bias: None,
        dropout: Dropout::off(),
        residual: f.x,
        y: f.y,
    };
    multiply(cx, Shape { m: t, n: d, k: m }, &SwiGlu { h: f.h }, right, &finish);
    Ok(())
}

/// From the gradient of `silu(h1) * h3` to those of `h1` and `h3`.
struct ThroughGate {
    h: Mat,
    dh: Grad,
}

impl Finish for ThroughGate {
    #[inline(always)]
    unsafe fn ahead<V: Simd>(&self, i: usize, j: usize) {
        for i in i..i + MR {
            for j in [j, j + self.h.cols / 2] {
                // SAFETY: by this function's contract.
                unsafe {
                    V::prefetch(self.h.at(i, j));
                    V::prefetch(self.dh.to.at(i, j));
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn take<V: Simd>(&self, i: usize, j: usize, n: usize, acc: *mut f32) {
        // SAFETY: by this function's contract.
        unsafe {
            let m = self.h.cols / 2;
            let (h1, to) = (self.h.at(i, j), self.dh.to.at(i, j));
            for at in (0..n).step_by(LINE) {
                let left = n - at;
                let g = V::Line::load(acc.add(at));
                let (a, b) = (
                    V::Line::load_upto(h1.add(at), left),
                    V::Line::load_upto(h1.add(m + at), left),
                );
                let s = a.sigmoid();
                let silu_grad = s.mul(a).fma(V::Line::splat(1.0).sub(s), s);
                for (d, to) in [(g.mul(b).mul(silu_grad), to.add(at)), (g.mul(a.mul(s)), to.add(m + at))] {
                    let d = if self.dh.accumulate {
                        V::Line::load_upto(to, left).add(d)
                    } else {
                        d
                    };
                    d.store_upto(to, left);
                }
            }
        }
    }
}

/// See [`Backward`].
pub fn backward(cx: &Ctx, b: Backward) -> Outcome {
    let (t, m, d) = (b.h.rows, b.h.cols / 2, b.dy.cols);
    check_mat(OP, "h", b.h, t, 2 * m)?;
    let right = backward_weight(OP, b.w, m, d)?;
    check_mat(OP, "dy", b.dy, t, d)?;
    check_grad(OP, "dh", Some(b.dh), t, 2 * m)?;
    check_grad(OP, "dw", Some(b.dw), m, d)?;
    let finish = ThroughGate { h: b.h, dh: b.dh };
    multiply(cx, Shape { m: t, n: m, k: d }, &b.dy, right, &finish);
    outer(cx, t, &SwiGlu { h: b.h }, &b.dy, b.dw, None);
    Ok(())
}
