//! `y[T, N] = act(drop(norm(x[T, D])) W[D, N] + b)`: the input projection of every block, the first half of a
//! feed-forward.
//!
//! Letters: T tokens, D input width, N output width.

use super::pack_weight::{backward_weight, forward_weight};
use super::sources::{ActGrad, Measure, Normed};
use super::store::drop_row;
use super::{Act, Norm, dropout_row};
use crate::ctx::Ctx;
use crate::fault::{FaultKind, Outcome, fault};
use crate::gemm::{Finish, Right, Shape, multiply, outer};
use crate::mat::{Grad, Mat, MatMut};
use crate::norm::norm::check_eps;
use crate::norm::rows::{NormGrad, row_norm_grad};
use crate::panels::{Panels, PanelsMut, Place, PlaceMut};
use crate::rng::Dropout;
use crate::shape::{check_grad, check_mat, check_mut, check_panels, check_vec};
use crate::simd::tile::MR;
use crate::simd::{Elements, LINE, Simd};

const OP: &str = "norm_linear";

/// Forward: writes `y`, the row statistics and optionally the pre-activation.
#[derive(Clone, Copy)]
pub struct Forward<'a> {
    pub x: Mat,
    pub norm: Norm,
    pub eps: f32,
    pub dropout: Dropout,
    pub w: Panels,
    pub bias: Option<&'a [f32]>,
    pub act: Act,
    pub y: PanelsMut,
    /// Pre-activation, needed for backward of SiLU.
    pub z: Option<PanelsMut>,
    /// `[T, 2]`: mean and reciprocal deviation of the rows of `x`.
    pub stats: MatMut,
}

/// Backward of the same call.
#[derive(Clone, Copy)]
pub struct Backward {
    pub x: Mat,
    pub norm: Norm,
    pub dropout: Dropout,
    /// `W[D, N]` in rows, or `W^T[N, D]` in panels.
    pub w: Panels,
    pub act: Act,
    /// What the activation's gradient needs: `z` for SiLU, `y` for ReLU, nothing without activation.
    pub saved: Option<Panels>,
    pub stats: Mat,
    /// Gradient of `y`; overwritten (by the gradient of `z`) unless the activation is none.
    pub dy: PanelsMut,
    pub dx: Option<Grad>,
    pub dw: Grad,
    /// One row.
    pub db: Option<Grad>,
}

struct Activate<'a, P> {
    bias: Option<&'a [f32]>,
    act: Act,
    y: P,
    z: Option<P>,
}

impl<P: PlaceMut> Finish for Activate<'_, P> {
    #[inline(always)]
    unsafe fn ahead<V: Simd>(&self, i: usize, j: usize) {
        // SAFETY: by this function's contract.
        unsafe {
            let (y, z) = (self.y.at(i, j), self.z.map(|z| z.at(i, j)));
            for r in 0..MR {
                V::prefetch(y.wrapping_add(r * self.y.stride()));
                if let (Some(z), Some(of)) = (z, self.z) {
                    V::prefetch(z.wrapping_add(r * of.stride()));
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn take<V: Simd>(&self, i: usize, j: usize, n: usize, acc: *mut f32) {
        // SAFETY: by this function's contract.
        unsafe { self.take_rows::<V>(i, 1, j, n, acc, 0) }
    }

    #[inline(always)]
    unsafe fn take_rows<V: Simd>(&self, i: usize, rows: usize, j: usize, n: usize, acc: *mut f32, stride: usize) {
        // SAFETY: by this function's contract.
        unsafe {
            for at in (0..n).step_by(LINE) {
                let (left, j) = (n - at, j + at);
                let (to_y, to_z) = (self.y.at_mut(i, j), self.z.map(|z| (z.at_mut(i, j), z.stride())));
                for r in 0..rows {
                    let mut z = V::Line::load(acc.add(r * stride + at));
                    if let Some(bias) = self.bias {
                        z = V::Line::load_upto(bias.as_ptr().add(j), left).add(z);
                    }
                    if let Some((to, stride)) = to_z {
                        z.store_upto(to.add(r * stride), left);
                    }
                    let y = match self.act {
                        Act::None => z,
                        Act::Silu => z.silu(),
                        Act::Relu => z.max(V::Line::zero()),
                    };
                    y.store_upto(to_y.add(r * self.y.stride()), left);
                }
            }
        }
    }
}

/// See [`Forward`].
pub fn forward(cx: &Ctx, f: Forward) -> Outcome {
    let (t, d, n) = (f.x.rows, f.x.cols, f.w.cols);
    let right = forward_weight(OP, f.w, d, n)?;
    check_vec(OP, "bias", f.bias, n)?;
    check_panels(OP, "y", f.y.as_ref(), t, n)?;
    f.z.map_or(Ok(()), |z| check_panels(OP, "z", z.as_ref(), t, n))?;
    check_mut(OP, "stats", f.stats, t, 2)?;
    check_eps(OP, f.eps)?;
    let measure = Measure {
        norm: f.norm,
        eps: f.eps,
        stats: f.stats,
    };
    let left = Normed {
        x: f.x,
        stats: f.stats.as_ref(),
        dropout: f.dropout,
        measure: Some(measure),
    };
    let (shape, bias, act) = (Shape { m: t, n, k: d }, f.bias, f.act);
    match (f.y.plain(), f.z.map(PanelsMut::plain)) {
        (Some(y), None) => multiply(cx, shape, &left, right, &Activate { bias, act, y, z: None }),
        (Some(y), Some(z @ Some(_))) => multiply(cx, shape, &left, right, &Activate { bias, act, y, z }),
        _ => {
            let (y, z) = (f.y, f.z);
            multiply(cx, shape, &left, right, &Activate { bias, act, y, z });
        }
    }
    Ok(())
}

/// From the gradient of the normed, dropped-out row to that of the row.
struct ThroughNorm {
    x: Mat,
    norm: Norm,
    stats: Mat,
    dropout: Dropout,
    dx: Grad,
}

impl Finish for ThroughNorm {
    fn whole_rows(&self) -> bool {
        self.norm != Norm::None || !self.dropout.is_off()
    }

    #[inline(always)]
    unsafe fn take<V: Simd>(&self, i: usize, j: usize, n: usize, acc: *mut f32) {
        // SAFETY: by this function's contract.
        unsafe {
            let stats = self.stats.row(i);
            drop_row::<V>(&self.dropout, dropout_row(i, self.x.cols) + j as u64, acc, n);
            row_norm_grad::<V>(NormGrad {
                norm: self.norm,
                x: self.x.at(i, j),
                stats: [stats[0], stats[1]],
                g: acc,
                n,
                dx: self.dx.to.at(i, j),
                accumulate: self.dx.accumulate,
            });
        }
    }
}

/// See [`Backward`].
pub fn backward(cx: &Ctx, b: Backward) -> Outcome {
    let (t, d, n) = (b.x.rows, b.x.cols, b.dy.cols);
    let right = backward_weight(OP, b.w, d, n)?;
    check_mat(OP, "stats", b.stats, t, 2)?;
    check_panels(OP, "dy", b.dy.as_ref(), t, n)?;
    check_grad(OP, "dx", b.dx, t, d)?;
    check_grad(OP, "dw", Some(b.dw), d, n)?;
    check_grad(OP, "db", b.db, 1, n)?;
    let saved = match (b.act, b.saved) {
        (Act::None, _) => b.dy.as_ref(),
        (_, Some(saved)) => saved,
        (act, None) => {
            let expected = format!("what backward of {act:?} reads: z for SiLU, y for ReLU");
            return Err(fault(FaultKind::Argument, OP, "saved", expected, "nothing"));
        }
    };
    check_panels(OP, "saved", saved, t, n)?;
    match (b.dy.plain(), saved.plain()) {
        (Some(dy), Some(saved)) => through(cx, &b, right, dy, saved),
        _ => through(cx, &b, right, b.dy, saved),
    }
    Ok(())
}

/// [`backward`] for a layout of `dy` and the saved tensor.
fn through(cx: &Ctx, b: &Backward, right: Right, dy: impl PlaceMut, saved: impl Place) {
    let (t, d, n) = (b.x.rows, b.x.cols, b.dy.cols);
    let mut dz = ActGrad {
        act: b.act,
        dy,
        saved,
        keep: b.dx.is_some(),
    };
    if let Some(dx) = b.dx {
        let finish = ThroughNorm {
            x: b.x,
            norm: b.norm,
            stats: b.stats,
            dropout: b.dropout,
            dx,
        };
        multiply(cx, Shape { m: t, n: d, k: n }, &dz, right, &finish);
        dz.act = Act::None; // `dy` holds `dz` now
    }
    let left = Normed {
        x: b.x,
        stats: b.stats,
        dropout: b.dropout,
        measure: None,
    };
    outer(cx, t, &left, &dz, b.dw, b.db);
}
