//! Left operands of the fused layers, computed row by row while they are packed.

use super::{Act, dropout_row};
use crate::gemm::{Source, row_as_it_is, rows_ahead};
use crate::mat::{Mat, MatMut};
use crate::norm::Norm;
use crate::norm::rows::row_stats;
use crate::panels::{Place, PlaceMut};
use crate::rng::Dropout;
use crate::simd::{Elements, LINE, Simd};

/// Fills `stage` with the dropout factors of columns `[k, k + n)` of row `i`, to be multiplied in place.
///
/// # Safety
/// This CPU has `V`'s instructions; `stage` has room for `n` floats rounded up to 64; if the dropout remembers its decisions, its memory covers row `i`.
#[inline(always)]
unsafe fn factors<V: Simd>(dropout: &Dropout, i: usize, cols: usize, k: usize, n: usize, stage: *mut f32) {
    // Whole groups of 64 are the fast path; the stage is large enough.
    let len = if dropout.remembers() { n } else { n.next_multiple_of(64) };
    // SAFETY: by this function's contract.
    let out = unsafe { std::slice::from_raw_parts_mut(stage, len) };
    // SAFETY: as above; `V`'s instruction set is this CPU's.
    unsafe { dropout.fill(V::ISA, dropout_row(i, cols) + k as u64, out) };
}

/// `drop(x)`.
pub struct Dropped {
    pub x: Mat,
    pub dropout: Dropout,
}

impl Source for Dropped {
    #[inline(always)]
    unsafe fn row<V: Simd>(&self, i: usize, k: usize, n: usize, stage: *mut f32) -> *const f32 {
        // SAFETY: by this function's contract.
        unsafe {
            if self.dropout.is_off() {
                return Source::row::<V>(&self.x, i, k, n, stage);
            }
            let x = self.x.at(i, k);
            factors::<V>(&self.dropout, i, self.x.cols, k, n, stage);
            let next = i + rows_ahead(n);
            for line in (0..n).step_by(LINE) {
                V::prefetch(self.x.at(next, k + line));
                let to = stage.add(line);
                V::Line::load(to)
                    .mul(V::Line::load_upto(x.add(line), n - line))
                    .store(to);
            }
            stage
        }
    }
}

/// Measures the rows' statistics on first touch.
#[derive(Clone, Copy)]
pub struct Measure {
    pub norm: Norm,
    pub eps: f32,
    pub stats: MatMut,
}

impl Measure {
    /// # Safety
    /// This CPU has `V`'s instructions; rows `[first, first + rows)` of `x` are alive, and this task owns their statistics.
    #[inline(always)]
    unsafe fn rows<V: Simd>(&self, x: Mat, first: usize, rows: usize) {
        for i in first..first + rows {
            // SAFETY: the block's rows are the running task's own.
            unsafe {
                let stats = row_stats::<V>(self.norm, self.eps, x.row(i).as_ptr(), x.cols);
                self.stats.row(i).copy_from_slice(&stats);
            }
        }
    }
}

/// `drop(norm(x))` from the rows' statistics, which are computed first if requested.
pub struct Normed {
    pub x: Mat,
    pub stats: Mat,
    pub dropout: Dropout,
    pub measure: Option<Measure>,
}

impl Source for Normed {
    #[inline(always)]
    unsafe fn start<V: Simd>(&self, first: usize, rows: usize) {
        if let Some(measure) = self.measure {
            // SAFETY: by this function's contract.
            unsafe { measure.rows::<V>(self.x, first, rows) };
        }
    }

    #[inline(always)]
    unsafe fn row<V: Simd>(&self, i: usize, k: usize, n: usize, stage: *mut f32) -> *const f32 {
        // SAFETY: by this function's contract.
        unsafe { self.gated_row::<V, Mat>(None, i, k, n, stage) }
    }
}

impl Normed {
    /// The row, times that of `gate` if there is one.
    ///
    /// # Safety
    /// As [`Source::row`].
    #[inline(always)]
    unsafe fn gated_row<V: Simd, P: Place>(
        &self,
        gate: Option<P>,
        i: usize,
        k: usize,
        n: usize,
        stage: *mut f32,
    ) -> *const f32 {
        // SAFETY: by this function's contract.
        unsafe {
            let stats = self.stats.row(i);
            let (mean, rstd) = (V::Line::splat(stats[0]), V::Line::splat(stats[1]));
            let x = self.x.at(i, k);
            let dropped = !self.dropout.is_off();
            if dropped {
                factors::<V>(&self.dropout, i, self.x.cols, k, n, stage);
            }
            let ahead = rows_ahead(n);
            for line in (0..n).step_by(LINE) {
                V::prefetch(self.x.at(i + ahead, k + line));
                let gates = gate.map(|gate| gate.at(i, k + line));
                if let (Some(gate), Some(gates)) = (gate, gates) {
                    V::prefetch(gates.wrapping_add(ahead * gate.stride()));
                }
                let to = stage.add(line);
                let mut out = V::Line::load_upto(x.add(line), n - line).sub(mean).mul(rstd);
                if dropped {
                    out = out.mul(V::Line::load(to));
                }
                if let Some(gates) = gates {
                    out = out.mul(V::Line::load_upto(gates, n - line));
                }
                out.store(to);
            }
            stage
        }
    }
}

/// `drop(u * norm(o))`.
pub struct Gated<P> {
    pub u: P,
    pub o: Normed,
}

impl<P: Place> Source for Gated<P> {
    #[inline(always)]
    unsafe fn start<V: Simd>(&self, first: usize, rows: usize) {
        // SAFETY: by this function's contract.
        unsafe { self.o.start::<V>(first, rows) };
    }

    #[inline(always)]
    unsafe fn row<V: Simd>(&self, i: usize, k: usize, n: usize, stage: *mut f32) -> *const f32 {
        // SAFETY: by this function's contract.
        unsafe { self.o.gated_row::<V, P>(Some(self.u), i, k, n, stage) }
    }
}

/// `silu(h1) * h3` of `h = [h1 | h3]`.
pub struct SwiGlu {
    pub h: Mat,
}

impl Source for SwiGlu {
    #[inline(always)]
    unsafe fn row<V: Simd>(&self, i: usize, k: usize, n: usize, stage: *mut f32) -> *const f32 {
        // SAFETY: by this function's contract.
        unsafe {
            let h1 = self.h.at(i, k);
            let h3 = h1.add(self.h.cols / 2);
            let next = i + rows_ahead(n);
            for line in (0..n).step_by(LINE) {
                V::prefetch(self.h.at(next, k + line));
                V::prefetch(self.h.at(next, self.h.cols / 2 + k + line));
                let (a, b) = (h1.add(line), h3.add(line));
                let (a, b) = (V::Line::load_upto(a, n - line), V::Line::load_upto(b, n - line));
                a.silu().mul(b).store(stage.add(line));
            }
            stage
        }
    }
}

/// `dz = dy * act'`, from `z` for SiLU and from `y` for ReLU. Written back over `dy` if `keep`, so that the
/// weight gradient need not compute it again.
#[derive(Clone, Copy)]
pub struct ActGrad<G, S> {
    pub act: Act,
    pub dy: G,
    pub saved: S,
    pub keep: bool,
}

impl<G: PlaceMut, S: Place> Source for ActGrad<G, S> {
    #[inline(always)]
    fn panel(&self, i: usize, k: usize) -> Option<*const f32> {
        (self.act == Act::None && self.dy.in_panels()).then(|| self.dy.at(i, k))
    }

    #[inline(always)]
    unsafe fn row<V: Simd>(&self, i: usize, k: usize, n: usize, stage: *mut f32) -> *const f32 {
        // SAFETY: by this function's contract.
        unsafe {
            let ActGrad { act, dy, saved, keep } = *self;
            if act == Act::None {
                return row_as_it_is::<V>(dy, i, k, n, stage);
            }
            // The kept row is also the result, unless it spans several panels.
            let in_place = keep && dy.together(k, n);
            let to = if in_place { dy.at_mut(i, k) } else { stage };
            let next = i + rows_ahead(n);
            for line in (0..n).step_by(LINE) {
                V::prefetch(dy.at(next, k + line));
                V::prefetch(saved.at(next, k + line));
                let left = n - line;
                let (dy, saved) = (dy.at_mut(i, k + line), saved.at(i, k + line));
                let (g, s) = (V::Line::load_upto(dy, left), V::Line::load_upto(saved, left));
                let dz = if act == Act::Silu {
                    let [slope] = Elements::silu_grads([s]);
                    g.mul(slope)
                } else {
                    g.where_positive(s)
                };
                dz.store_upto(to.add(line), left);
                if keep && !in_place {
                    dz.store_upto(dy, left);
                }
            }
            to
        }
    }
}
