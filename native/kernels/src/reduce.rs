//! Column sums over tokens with a fixed partition: each block of rows has its own partial row, and the partial rows are
//! added in order. The result depends only on the shape, not on the threads.

use crate::ctx::Ctx;
use crate::mat::{Grad, Mat};
use crate::simd::{LANES, Simd};
use crate::simd_fn;

/// Rows that share one partial sum.
pub const BLOCK: usize = 64;

/// Columns one task of [`sum_rows`] adds up.
const COLUMNS: usize = 256;

/// # Safety
/// This CPU has `V`'s instructions; columns `[from, from + cols)` of `parts` are alive, and `to` has room for them.
#[inline(always)]
unsafe fn sum_rows_body<V: Simd>(parts: Mat, from: usize, cols: usize, to: *mut f32, accumulate: bool) {
    // SAFETY: by this function's contract.
    unsafe {
        for at in (0..cols).step_by(LANES) {
            let left = cols - at;
            let to = to.add(at);
            let mut sum = if accumulate { V::load_upto(to, left) } else { V::zero() };
            for i in 0..parts.rows {
                sum = sum.add(V::load_upto(parts.at(i, from + at), left));
            }
            sum.store_upto(to, left);
        }
    }
}
simd_fn!(fn sum_columns = sum_rows_body(parts: Mat, from: usize, cols: usize, to: *mut f32, accumulate: bool));

/// `to[0, :] (+)= sum over i of parts[i, :]`, in the order of the rows.
pub fn sum_rows(cx: &Ctx, parts: Mat, to: Grad) {
    cx.pool.run(parts.cols.div_ceil(COLUMNS), |task, _| {
        let from = task * COLUMNS;
        let cols = COLUMNS.min(parts.cols - from);
        // SAFETY: tasks own disjoint columns of `to`, which is as wide as `parts`.
        unsafe { sum_columns(cx.isa, parts, from, cols, to.to.at(0, from), to.accumulate) };
    });
}

/// `sum[0..n] += row[0..n]`.
///
/// # Safety
/// Both pointers are valid for `n` floats; called from a SIMD entry point.
#[inline(always)]
pub(crate) unsafe fn add_row<V: Simd>(sum: *mut f32, row: *const f32, n: usize) {
    // SAFETY: by this function's contract.
    unsafe {
        for at in (0..n).step_by(LANES) {
            let (left, sum) = (n - at, sum.add(at));
            V::load_upto(sum, left)
                .add(V::load_upto(row.add(at), left))
                .store_upto(sum, left);
        }
    }
}
