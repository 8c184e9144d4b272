//! Where a product's operand comes from, row by row.

use crate::mat::Mat;
use crate::simd::{LINE, Simd};

/// An operand whose rows are computed when they are packed.
pub trait Source: Sync {
    /// Called once for rows `[first, first + rows)` before any of them is asked for, by the task that packs them;
    /// a place for row statistics.
    ///
    /// # Safety
    /// Below a SIMD entry; the rows exist.
    #[inline(always)]
    unsafe fn start<V: Simd>(&self, _first: usize, _rows: usize) {}

    /// Columns `[k, k + n)` of row `i`: writes them to `stage` and returns it, or returns where they already are.
    /// `k` is a multiple of 8 and `stage` has room for `n` rounded up to 64. Rows come in order, so the row
    /// [`rows_ahead`] is worth prefetching: memory is slow to notice the pattern, since rows of a slice are short.
    ///
    /// # Safety
    /// Below a SIMD entry; the range lies in the operand.
    unsafe fn row<V: Simd>(&self, i: usize, k: usize, n: usize, stage: *mut f32) -> *const f32;
}

/// How many rows ahead to prefetch when `n` floats of each are read: about 2 KB.
#[inline(always)]
pub fn rows_ahead(n: usize) -> usize {
    (512 / n.max(1)).clamp(1, 16)
}

/// A matrix as it is.
impl Source for Mat {
    #[inline(always)]
    unsafe fn row<V: Simd>(&self, i: usize, k: usize, n: usize, _stage: *mut f32) -> *const f32 {
        let next = i + rows_ahead(n);
        for at in (0..n).step_by(LINE) {
            // SAFETY: a prefetch reads nothing.
            unsafe { V::prefetch(self.at(next, k + at)) };
        }
        self.at(i, k)
    }
}
