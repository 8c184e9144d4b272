//! `y[T, D] = drop(u[T, M] * norm(o[T, M])) W[M, D] + b + x[T, D]`: the output of an HSTU or FuXi attention layer.
//!
//! Letters: T tokens, M width of the attention's output, D model width.

use super::pack_weight::{backward_weight, forward_weight};
use super::sources::{Gated, Measure, Normed};
use super::store::{Residual, drop_row};
use super::{Norm, dropout_row};
use crate::ctx::Ctx;
use crate::fault::{FaultKind, Outcome, fault};
use crate::gemm::{Finish, Right, Shape, multiply, outer};
use crate::mat::{Grad, Mat, MatMut};
use crate::norm::norm::check_eps;
use crate::norm::rows::{NormGrad, row_norm_grad};
use crate::panels::{Panels, PanelsMut, Place, PlaceMut};
use crate::rng::Dropout;
use crate::shape::{check_grad, check_mat, check_mut, check_panels, check_vec};
use crate::simd::{LANES, LINE, Simd};

const OP: &str = "gated_norm_linear_residual";

/// Forward: writes `y` and the row statistics of `o`.
#[derive(Clone, Copy)]
pub struct Forward<'a> {
    pub u: Panels,
    pub o: Mat,
    pub norm: Norm,
    pub eps: f32,
    pub dropout: Dropout,
    /// Dropout decisions for backward, one bit per element; stored if given.
    pub mask: Option<MatMut<i64>>, // [1, T * M / 64]
    pub w: Panels,
    pub bias: Option<&'a [f32]>,
    pub x: Mat,
    pub y: MatMut,
    /// `[T, 2]`: mean and reciprocal deviation of the rows of `o`.
    pub stats: MatMut,
}

/// Backward of the same call; the gradient of `x` is `dy` itself.
#[derive(Clone, Copy)]
pub struct Backward {
    pub u: Panels,
    pub o: Mat,
    pub norm: Norm,
    pub dropout: Dropout,
    /// As stored by forward; without it the same decisions are drawn again.
    pub mask: Option<Mat<i64>>,
    /// `W[M, D]` in rows, or `W^T[D, M]` in panels.
    pub w: Panels,
    pub stats: Mat,
    pub dy: Mat,
    pub du: Grad<PanelsMut>,
    pub d_o: Grad,
    pub dw: Grad,
    /// One row.
    pub db: Option<Grad>,
}

/// Rows must be whole words, so that two tasks never write the same word.
fn check_mask(mask: Option<Mat<i64>>, rows: usize, cols: usize) -> Outcome {
    let Some(mask) = mask else { return Ok(()) };
    if !cols.is_multiple_of(64) {
        let (expected, got) = (
            "none, unless the width is a multiple of 64",
            format!("one for {cols} columns"),
        );
        return Err(fault(FaultKind::Argument, OP, "mask", expected, got));
    }
    check_mat(OP, "mask", mask, 1, rows * cols / 64)
}

/// See [`Forward`].
pub fn forward(cx: &Ctx, f: Forward) -> Outcome {
    let (t, m, d) = (f.o.rows, f.o.cols, f.w.cols);
    check_panels(OP, "u", f.u, t, m)?;
    let right = forward_weight(OP, f.w, m, d)?;
    check_vec(OP, "bias", f.bias, d)?;
    check_mat(OP, "x", f.x, t, d)?;
    check_mut(OP, "y", f.y, t, d)?;
    check_mut(OP, "stats", f.stats, t, 2)?;
    check_eps(OP, f.eps)?;
    check_mask(f.mask.map(MatMut::as_ref), t, m)?;
    let measure = Measure {
        norm: f.norm,
        eps: f.eps,
        stats: f.stats,
    };
    let o = Normed {
        x: f.o,
        stats: f.stats.as_ref(),
        dropout: match f.mask {
            Some(mask) => f.dropout.writing(mask.ptr.cast()),
            None => f.dropout,
        },
        measure: Some(measure),
    };
    let finish = Residual {
        bias: f.bias,
        dropout: Dropout::off(),
        residual: f.x,
        y: f.y,
    };
    let shape = Shape { m: t, n: d, k: m };
    match f.u.plain() {
        Some(u) => multiply(cx, shape, &Gated { u, o }, right, &finish),
        None => multiply(cx, shape, &Gated { u: f.u, o }, right, &finish),
    }
    Ok(())
}

/// From the gradient of `drop(u * norm(o))` to those of `u` and `o`.
struct ThroughGatedNorm<'a, U, G> {
    of: &'a Backward,
    u: U,
    du: G,
}

impl<U: Place, G: PlaceMut> Finish for ThroughGatedNorm<'_, U, G> {
    fn whole_rows(&self) -> bool {
        true
    }

    #[inline(always)]
    unsafe fn take<V: Simd>(&self, i: usize, _j: usize, n: usize, acc: *mut f32) {
        // SAFETY: by this function's contract.
        unsafe {
            let ThroughGatedNorm { of: b, u, du } = *self;
            let (o, stats) = (b.o.row(i).as_ptr(), b.stats.row(i));
            let (mean, rstd) = (V::splat(stats[0]), V::splat(stats[1]));
            drop_row::<V>(&b.dropout, dropout_row(i, n), acc, n);
            for line in (0..n).step_by(LINE) {
                let (u, du) = (u.at(i, line), du.at_mut(i, line));
                for next in [
                    u.wrapping_add(self.u.stride()),
                    b.o.at(i + 1, line),
                    du.wrapping_add(self.du.stride()),
                    b.d_o.to.at(i + 1, line),
                ] {
                    V::prefetch(next);
                }
                for at in (line..n.min(line + LINE)).step_by(LANES) {
                    let (left, g, du) = (n - at, V::load(acc.add(at)), du.add(at - line));
                    V::load_upto(u.add(at - line), left).mul(g).store(acc.add(at));
                    let d = V::load_upto(o.add(at), left).sub(mean).mul(rstd).mul(g);
                    let d = if b.du.accumulate {
                        V::load_upto(du, left).add(d)
                    } else {
                        d
                    };
                    d.store_upto(du, left);
                }
            }
            row_norm_grad::<V>(NormGrad {
                norm: b.norm,
                x: o,
                stats: [stats[0], stats[1]],
                g: acc,
                n,
                dx: b.d_o.to.row(i).as_mut_ptr(),
                accumulate: b.d_o.accumulate,
            });
        }
    }
}

/// See [`Backward`].
pub fn backward(cx: &Ctx, mut b: Backward) -> Outcome {
    let (t, m, d) = (b.o.rows, b.o.cols, b.dy.cols);
    check_panels(OP, "u", b.u, t, m)?;
    let right = backward_weight(OP, b.w, m, d)?;
    check_mask(b.mask, t, m)?;
    check_mat(OP, "stats", b.stats, t, 2)?;
    check_mat(OP, "dy", b.dy, t, d)?;
    check_panels(OP, "du", b.du.to.as_ref(), t, m)?;
    check_grad(OP, "do", Some(b.d_o), t, m)?;
    check_grad(OP, "dw", Some(b.dw), m, d)?;
    check_grad(OP, "db", b.db, 1, d)?;
    if let Some(mask) = b.mask {
        b.dropout = b.dropout.reading(mask.ptr.cast());
    }
    match (b.u.plain(), b.du.to.plain()) {
        (Some(u), Some(du)) => through(cx, &b, right, u, du),
        _ => through(cx, &b, right, b.u, b.du.to),
    }
    Ok(())
}

/// [`backward`] for a layout of `u` and its gradient.
fn through(cx: &Ctx, b: &Backward, right: Right, u: impl Place, du: impl PlaceMut) {
    let (t, m, d) = (b.o.rows, b.o.cols, b.dy.cols);
    multiply(
        cx,
        Shape { m: t, n: m, k: d },
        &b.dy,
        right,
        &ThroughGatedNorm { of: b, u, du },
    );
    let o = Normed {
        x: b.o,
        stats: b.stats,
        dropout: b.dropout,
        measure: None,
    };
    outer(cx, t, &Gated { u, o }, &b.dy, b.dw, b.db);
}
