//! The rows of a product's operand.

use crate::mat::Mat;
use crate::panels::Place;
use crate::simd::{Elements, LINE, Simd};

/// An operand whose rows are computed when they are packed.
pub trait Source: Sync {
    /// Called once for rows `[first, first + rows)` before they are read, by the task that packs them: computes row statistics.
    ///
    /// # Safety
    /// Called from a SIMD entry point; the rows exist.
    #[inline(always)]
    unsafe fn start<V: Simd>(&self, _first: usize, _rows: usize) {}

    /// Columns `[k, k + n)` of row `i`: writes them to `stage` and returns it, or returns their existing address. `k` is a multiple
    /// of 8 and `stage` has room for `n` rounded up to 64. Rows are read in order, so the row [`rows_ahead`] is worth prefetching:
    /// the rows of a slice are too short for the hardware prefetcher.
    ///
    /// # Safety
    /// Called from a SIMD entry point; the range lies in the operand.
    unsafe fn row<V: Simd>(&self, i: usize, k: usize, n: usize, stage: *mut f32) -> *const f32;

    /// Address of columns `[k, k + 16)` of row `i`, if those of the next rows follow contiguously: the form of a right operand.
    #[inline(always)]
    fn panel(&self, _i: usize, _k: usize) -> Option<*const f32> {
        None
    }
}

/// How many rows ahead to prefetch when `n` floats of each are read: about 2 KB.
#[inline(always)]
pub fn rows_ahead(n: usize) -> usize {
    (512 / n.max(1)).clamp(1, 16)
}

/// A plain matrix.
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

/// A row of a plain matrix; gathered if the columns come from several panels.
///
/// # Safety
/// As [`Source::row`].
#[inline(always)]
pub unsafe fn row_as_it_is<V: Simd>(of: impl Place, i: usize, k: usize, n: usize, stage: *mut f32) -> *const f32 {
    let next = i + rows_ahead(n);
    let together = of.together(k, n);
    for at in (0..n).step_by(LINE) {
        // SAFETY: a prefetch reads nothing; a line is contiguous, and the stage has room for it.
        unsafe {
            V::prefetch(of.at(next, k + at));
            if !together {
                V::Line::load_upto(of.at(i, k + at), n - at).store(stage.add(at));
            }
        }
    }
    if together { of.at(i, k) } else { stage }
}
