//! Packs operands in the order in which the tile reads them: depth outermost, then 6 (left) or 16 (right) adjacent elements.

use super::source::Source;
use crate::mat::Mat;
use crate::panels::Panels;
use crate::simd::tile::{MR, NR};
use crate::simd::{Kernel, LANES, Simd};

/// Packs rows `[first, first + rows)`, columns `[k, k + depth)` of a source as slivers of six rows, `[depth][6]` each;
/// rows that do not exist are zero.
pub struct PackRows<'a, S> {
    pub source: &'a S,
    pub first: usize,
    pub rows: usize,
    pub k: usize,
    pub depth: usize,
    /// Room for six rows, `stage_stride` apart, at least `depth` rounded up to 64.
    pub stage: *mut f32,
    pub stage_stride: usize,
    /// Slivers one after the other, and two floats more.
    pub to: *mut f32,
}

impl<S: Source> Kernel for PackRows<'_, S> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        // SAFETY: by the contract of `dispatch`.
        unsafe {
            if self.k == 0 {
                self.source.start::<V>(self.first, self.rows);
            }
            for sliver in 0..self.rows.div_ceil(MR) {
                let first = sliver * MR;
                let mut rows = [std::ptr::null(); MR];
                for (r, row) in rows.iter_mut().enumerate() {
                    let stage = self.stage.add(r * self.stage_stride);
                    *row = if first + r < self.rows {
                        self.source.row::<V>(self.first + first + r, self.k, self.depth, stage)
                    } else {
                        std::slice::from_raw_parts_mut(stage, self.depth).fill(0.0);
                        stage
                    };
                }
                interleave::<V>(&rows, self.depth, self.to.add(first * self.depth));
            }
        }
    }
}

/// Transposes six rows of `depth` floats to `[depth][6]`. Eight lanes are stored for six, so two floats beyond the end are
/// overwritten: the next sliver's, written later.
///
/// # Safety
/// This CPU has `V`'s instructions; each row holds `depth` floats, `to` has room for `6 * depth + 2`.
#[inline(always)]
unsafe fn interleave<V: Simd>(rows: &[*const f32; MR], depth: usize, to: *mut f32) {
    // SAFETY: by this function's contract.
    unsafe {
        let whole = depth / LANES * LANES;
        for k in (0..whole).step_by(LANES) {
            let mut lanes = [V::zero(); LANES];
            for (lane, row) in lanes.iter_mut().zip(rows) {
                *lane = V::load(row.add(k));
            }
            for (u, column) in V::transpose(lanes).into_iter().enumerate() {
                column.store(to.add((k + u) * MR));
            }
        }
        for k in whole..depth {
            for (r, row) in rows.iter().enumerate() {
                *to.add(k * MR + r) = *row.add(k);
            }
        }
    }
}

/// The right operand of a product.
#[derive(Clone, Copy)]
pub enum Right {
    /// `B[k, n]`.
    Plain(Mat),
    /// `B = W^T` with `W[n, k]`.
    Transposed(Mat),
    /// `B[k, n]` in panels, which is how the tile reads it.
    Packed(Panels),
}

/// Packs columns `[j, j + 16)`, depth `[k, k + depth)` of a right operand that is not packed as `[depth][16]`, zeros beyond its
/// last column.
pub struct PackPanel {
    pub right: Right,
    pub j: usize,
    pub k: usize,
    pub depth: usize,
    pub to: *mut f32,
}

impl Kernel for PackPanel {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        // SAFETY: by the contract of `dispatch`.
        unsafe {
            match self.right {
                Right::Plain(b) => {
                    let cols = NR.min(b.cols - self.j);
                    for u in 0..self.depth {
                        let from = b.at(self.k + u, self.j);
                        copy_line::<V>(from, cols, self.to.add(u * NR));
                    }
                }
                Right::Packed(_) => {}
                Right::Transposed(w) => {
                    let rows = NR.min(w.rows - self.j);
                    for half in [0, LANES] {
                        for k in (0..self.depth).step_by(LANES) {
                            let mut lanes = [V::zero(); LANES];
                            for (r, lane) in lanes.iter_mut().enumerate().take(rows.saturating_sub(half)) {
                                *lane = V::load_upto(w.at(self.j + half + r, self.k + k), self.depth - k);
                            }
                            let columns = V::transpose(lanes);
                            for (u, column) in columns.into_iter().enumerate().take(self.depth - k) {
                                column.store(self.to.add((k + u) * NR + half));
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Sixteen floats from `cols` (the rest zero).
///
/// # Safety
/// `from` is valid for `cols` floats and `to` for sixteen; called from a SIMD entry point.
#[inline(always)]
pub unsafe fn copy_line<V: Simd>(from: *const f32, cols: usize, to: *mut f32) {
    // SAFETY: by this function's contract.
    unsafe {
        V::load_upto(from, cols).store(to);
        let rest = if cols > LANES {
            V::load_upto(from.add(LANES), cols - LANES)
        } else {
            V::zero()
        };
        rest.store(to.add(LANES));
    }
}

/// Splits `total` into the fewest parts of at most `most`, as evenly as multiples of `unit` allow; returns the part size, never 0.
pub fn even_part(total: usize, most: usize, unit: usize) -> usize {
    let parts = total.div_ceil(most).max(1);
    total.div_ceil(parts).next_multiple_of(unit).max(unit)
}
