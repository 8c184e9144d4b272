//! Weights packed in advance. A product packs its weight each time; where several lanes use a weight before it changes, it is
//! packed once for all of them: `W[D, N]` in panels for forward, `W^T[N, D]` in panels for the data gradient. Layers take either
//! in place of `W` in rows, with the same bits.

use crate::ctx::Ctx;
use crate::fault::Outcome;
use crate::gemm::{PackPanel, Right};
use crate::mat::Mat;
use crate::panels::{Panels, PanelsMut, PlaceMut};
use crate::shape::{check_mat, check_panels};
use crate::simd::dispatch;

const OP: &str = "pack_weight";

/// Which pass reads the packed weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    Forward,
    Backward,
}

/// Writes `w[D, N]`, or its transpose for backward, to the panels of `to`.
pub fn pack_weight(cx: &Ctx, w: Mat, pass: Pass, to: PanelsMut) -> Outcome {
    let (right, rows, cols) = match pass {
        Pass::Forward => (Right::Plain(w), w.rows, w.cols),
        Pass::Backward => (Right::Transposed(w), w.cols, w.rows),
    };
    check_panels(OP, "to", to.as_ref(), rows, cols)?;
    cx.pool.run(cols / Panels::WIDTH, |panel, _| {
        let j = panel * Panels::WIDTH;
        // SAFETY: the panel is this task's own, its rows are contiguous, and `w` has its columns.
        unsafe {
            let to = to.at_mut(0, j);
            dispatch(
                cx.isa,
                PackPanel {
                    right,
                    j,
                    k: 0,
                    depth: rows,
                    to,
                },
            );
        }
    });
    Ok(())
}

/// The weight of a forward pass as right operand: `W[D, N]`, in rows or in panels.
pub(super) fn forward_weight(op: &'static str, w: Panels, d: usize, n: usize) -> Outcome<Right> {
    check_panels(op, "w", w, d, n)?;
    Ok(w.plain().map_or(Right::Packed(w), Right::Plain))
}

/// The same for the data gradient: `W[D, N]` in rows or `W^T[N, D]` in panels.
pub(super) fn backward_weight(op: &'static str, w: Panels, d: usize, n: usize) -> Outcome<Right> {
    match w.plain() {
        Some(w) => check_mat(op, "w", w, d, n).map(|()| Right::Transposed(w)),
        None => check_panels(op, "w", w, n, d).map(|()| Right::Packed(w)),
    }
}
