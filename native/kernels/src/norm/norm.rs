//! `y[T, D] = norm(x) * gain + shift`, gain and shift optional. A separate pass; inside a layer the norm is fused with the
//! product that follows (see [`crate::linear::norm_linear`]).
//!
//! Letters: T tokens, D width.

use super::Norm;
use super::rows::{NormGrad, row_norm_grad, row_stats};
use crate::ctx::Ctx;
use crate::fault::{FaultKind, Outcome, fault};
use crate::mat::{Disjoint, Grad, Mat, MatMut};
use crate::reduce::{BLOCK, sum_rows};
use crate::shape::{check_grad, check_mat, check_mut, check_vec};
use crate::simd::{LANES, Simd};
use crate::simd_fn;

const OP: &str = "norm";

/// Forward: writes `y` and the row statistics that backward reads.
#[derive(Clone, Copy)]
pub struct Forward<'a> {
    pub x: Mat,
    pub norm: Norm,
    pub eps: f32,
    pub gain: Option<&'a [f32]>,
    pub shift: Option<&'a [f32]>,
    pub y: MatMut,
    /// `[T, 2]`: mean and reciprocal deviation.
    pub stats: MatMut,
}

/// Backward of the same call. `dgain` and `dshift` are one row each.
#[derive(Clone, Copy)]
pub struct Backward<'a> {
    pub x: Mat,
    pub norm: Norm,
    pub gain: Option<&'a [f32]>,
    pub stats: Mat,
    pub dy: Mat,
    pub dx: Option<Grad>,
    pub dgain: Option<Grad>,
    pub dshift: Option<Grad>,
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
            let [mean, rstd] = row_stats::<V>(f.norm, f.eps, x, d);
            f.stats.row(i).copy_from_slice(&[mean, rstd]);
            let (mean, rstd) = (V::splat(mean), V::splat(rstd));
            for at in (0..d).step_by(LANES) {
                let left = d - at;
                let xhat = V::load_upto(x.add(at), left).sub(mean).mul(rstd);
                let gain = match f.gain {
                    Some(gain) => V::load_upto(gain.as_ptr().add(at), left),
                    None => V::splat(1.0),
                };
                let shift = match f.shift {
                    Some(shift) => V::load_upto(shift.as_ptr().add(at), left),
                    None => V::zero(),
                };
                xhat.fma(gain, shift).store_upto(y.add(at), left);
            }
        }
    }
}
simd_fn!(fn forward_rows = forward_body(f: &Forward, first: usize, rows: usize));

/// See [`Forward`].
pub fn forward(cx: &Ctx, f: Forward) -> Outcome {
    let (t, d) = (f.x.rows, f.x.cols);
    check_mut(OP, "y", f.y, t, d)?;
    check_mut(OP, "stats", f.stats, t, 2)?;
    check_vec(OP, "gain", f.gain, d)?;
    check_vec(OP, "shift", f.shift, d)?;
    check_eps(OP, f.eps)?;
    cx.pool.run(t.div_ceil(BLOCK), |block, _| {
        let first = block * BLOCK;
        // SAFETY: blocks of rows are disjoint; shapes are checked.
        unsafe { forward_rows(cx.isa, &f, first, BLOCK.min(t - first)) };
    });
    Ok(())
}

/// One block's gradients: `scratch` holds `g`, `dgain` and `dshift` are the block's own partial rows.
struct BlockGrads {
    scratch: *mut f32,
    dgain: *mut f32,
    dshift: *mut f32,
}

/// # Safety
/// As [`forward_body`]; `to` is this task's own.
#[inline(always)]
unsafe fn backward_body<V: Simd>(b: &Backward, first: usize, rows: usize, to: &BlockGrads) {
    // SAFETY: by this function's contract.
    unsafe {
        let d = b.x.cols;
        for partial in [to.dgain, to.dshift] {
            std::slice::from_raw_parts_mut(partial, d).fill(0.0);
        }
        for i in first..first + rows {
            let (x, dy, stats) = (b.x.row(i).as_ptr(), b.dy.row(i).as_ptr(), b.stats.row(i));
            let (mean, rstd) = (V::splat(stats[0]), V::splat(stats[1]));
            for at in (0..d).step_by(LANES) {
                let left = d - at;
                let dy = V::load_upto(dy.add(at), left);
                let xhat = V::load_upto(x.add(at), left).sub(mean).mul(rstd);
                let gain = match b.gain {
                    Some(gain) => V::load_upto(gain.as_ptr().add(at), left),
                    None => V::splat(1.0),
                };
                dy.mul(gain).store_upto(to.scratch.add(at), left);
                let (dgain, dshift) = (to.dgain.add(at), to.dshift.add(at));
                dy.fma(xhat, V::load_upto(dgain, left)).store_upto(dgain, left);
                V::load_upto(dshift, left).add(dy).store_upto(dshift, left);
            }
            if let Some(dx) = b.dx {
                row_norm_grad::<V>(NormGrad {
                    norm: b.norm,
                    x,
                    stats: [stats[0], stats[1]],
                    g: to.scratch,
                    n: d,
                    dx: dx.to.row(i).as_mut_ptr(),
                    accumulate: dx.accumulate,
                });
            }
        }
    }
}
simd_fn!(fn backward_rows = backward_body(b: &Backward, first: usize, rows: usize, to: &BlockGrads));

/// See [`Backward`].
pub fn backward(cx: &Ctx, b: Backward) -> Outcome {
    let (t, d) = (b.x.rows, b.x.cols);
    check_mat(OP, "dy", b.dy, t, d)?;
    check_mat(OP, "stats", b.stats, t, 2)?;
    check_vec(OP, "gain", b.gain, d)?;
    check_grad(OP, "dx", b.dx, t, d)?;
    check_grad(OP, "dgain", b.dgain, 1, d)?;
    check_grad(OP, "dshift", b.dshift, 1, d)?;
    let blocks = t.div_ceil(BLOCK);
    let mut scratch = cx.per_worker::<f32>(d);
    let (mut gains, mut shifts) = (cx.scratch::<f32>(blocks * d), cx.scratch::<f32>(blocks * d));
    {
        let scratch = scratch.slots();
        let (gains, shifts) = (Disjoint::new(&mut gains), Disjoint::new(&mut shifts));
        cx.pool.run(blocks, |block, worker| {
            let first = block * BLOCK;
            // SAFETY: rows, partial rows and scratch are the task's own; shapes are checked.
            unsafe {
                let to = BlockGrads {
                    scratch: scratch.of(worker).as_mut_ptr(),
                    dgain: gains.range(block * d, d).as_mut_ptr(),
                    dshift: shifts.range(block * d, d).as_mut_ptr(),
                };
                backward_rows(cx.isa, &b, first, BLOCK.min(t - first), &to);
            }
        });
    }
    for (partial, to) in [(&gains, b.dgain), (&shifts, b.dshift)] {
        if let Some(to) = to {
            sum_rows(cx, Mat::new(partial, blocks, d), to);
        }
    }
    Ok(())
}

/// `eps` is a finite number above zero.
pub(crate) fn check_eps(op: &'static str, eps: f32) -> Outcome {
    if eps > 0.0 && eps.is_finite() {
        return Ok(());
    }
    Err(fault(
        FaultKind::Argument,
        op,
        "eps",
        "a finite number above 0",
        format!("{eps}"),
    ))
}
