//! `y[T, N] = drop_out(drop_in(x[T, D]) W[D, N] + b) + residual[T, N]`: the second half of a ReLU feed-forward, the
//! output projection of softmax attention.
//!
//! Letters: T tokens, D input width, N output width.

use super::pack_weight::{backward_weight, forward_weight};
use super::sources::Dropped;
use super::store::{DroppedGrad, Residual};
use crate::ctx::Ctx;
use crate::fault::Outcome;
use crate::gemm::{Shape, multiply, outer};
use crate::mat::{Grad, Mat, MatMut};
use crate::panels::Panels;
use crate::rng::Dropout;
use crate::shape::{check_grad, check_mat, check_mut, check_vec};

const OP: &str = "linear_residual";

/// Forward: writes `y`, which may be `residual` itself.
#[derive(Clone, Copy)]
pub struct Forward<'a> {
    pub x: Mat,
    pub drop_in: Dropout,
    pub w: Panels,
    pub bias: Option<&'a [f32]>,
    pub drop_out: Dropout,
    pub residual: Mat,
    pub y: MatMut,
}

/// Backward of the same call; the residual's gradient is `dy` itself, which is not modified.
#[derive(Clone, Copy)]
pub struct Backward {
    pub x: Mat,
    pub drop_in: Dropout,
    /// `W[D, N]` in rows, or `W^T[N, D]` in panels.
    pub w: Panels,
    pub drop_out: Dropout,
    pub dy: Mat,
    pub dx: Grad,
    pub dw: Grad,
    /// One row.
    pub db: Option<Grad>,
}

/// See [`Forward`].
pub fn forward(cx: &Ctx, f: Forward) -> Outcome {
    let (t, d, n) = (f.x.rows, f.x.cols, f.w.cols);
    let right = forward_weight(OP, f.w, d, n)?;
    check_vec(OP, "bias", f.bias, n)?;
    check_mat(OP, "residual", f.residual, t, n)?;
    check_mut(OP, "y", f.y, t, n)?;
    let left = Dropped {
        x: f.x,
        dropout: f.drop_in,
    };
    let finish = Residual {
        bias: f.bias,
        dropout: f.drop_out,
        residual: f.residual,
        y: f.y,
    };
    multiply(cx, Shape { m: t, n, k: d }, &left, right, &finish);
    Ok(())
}

/// See [`Backward`].
pub fn backward(cx: &Ctx, b: Backward) -> Outcome {
    let (t, d, n) = (b.x.rows, b.x.cols, b.dy.cols);
    let right = backward_weight(OP, b.w, d, n)?;
    check_mat(OP, "dy", b.dy, t, n)?;
    check_grad(OP, "dx", Some(b.dx), t, d)?;
    check_grad(OP, "dw", Some(b.dw), d, n)?;
    check_grad(OP, "db", b.db, 1, n)?;
    let dz = Dropped {
        x: b.dy,
        dropout: b.drop_out,
    };
    let finish = DroppedGrad {
        dropout: b.drop_in,
        dx: b.dx,
    };
    multiply(cx, Shape { m: t, n: d, k: n }, &dz, right, &finish);
    outer(
        cx,
        t,
        &Dropped {
            x: b.x,
            dropout: b.drop_in,
        },
        &dz,
        b.dw,
        b.db,
    );
    Ok(())
}
