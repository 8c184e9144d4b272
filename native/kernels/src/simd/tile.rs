//! The register tile of all products: six rows of sixteen sums, and a row of the right operand that is multiplied with an element
//! of the left one for each row. Where registers are wide, two such tiles side by side are computed at once. Each sum is one chain of
//! multiply-adds in the order of the depth, so it has the same bits in either case.

use super::{Elements, Simd};

/// Rows of the tile.
pub const MR: usize = 6;
/// Columns of the tile.
pub const NR: usize = 16;
/// Steps per iteration of the unrolled loop.
pub const UNROLL: usize = 4;

/// The sums of a tile.
pub type Sums<R> = [R; MR];

/// `sums[w] += A[6, depth] B_w[depth, 16]`: A(r, k) = `a[r * ROW + k * STEP]`, rows of B_w from `b[w]` on, sixteen floats apart.
///
/// # Safety
/// Called from a SIMD entry point; the operands hold `depth` steps.
#[inline(always)]
pub unsafe fn steps<V: Simd, const ROW: usize, const STEP: usize, const W: usize>(
    sums: &mut [Sums<V::Line>; W],
    depth: usize,
    a: *const f32,
    b: [*const f32; W],
) {
    // SAFETY: by this function's contract.
    unsafe {
        V::unrolled_steps::<ROW, STEP, W>(sums, [1, depth / UNROLL], 0, a, b);
        for k in depth / UNROLL * UNROLL..depth {
            let b = b.map(|b| b.wrapping_add(k * NR));
            step::<V::Line, ROW, W>(sums, a.wrapping_add(k * STEP), b);
        }
    }
}

/// The same with A in panels of sixteen steps, `panel` floats apart: A(r, k) = `a[k / 16 * panel + r * 16 + k % 16]`.
///
/// # Safety
/// As [`steps`].
#[inline(always)]
pub unsafe fn panel_steps<V: Simd, const W: usize>(
    sums: &mut [Sums<V::Line>; W],
    depth: usize,
    panel: usize,
    a: *const f32,
    b: [*const f32; W],
) {
    // SAFETY: by this function's contract.
    unsafe {
        let whole = depth / NR;
        V::unrolled_steps::<NR, 1, W>(sums, [whole, NR / UNROLL], panel, a, b);
        let b = b.map(|b| b.wrapping_add(whole * NR * NR));
        steps::<V, NR, 1, W>(sums, depth % NR, a.wrapping_add(whole * panel), b);
    }
}

/// One step of the depth.
///
/// # Safety
/// As [`steps`].
#[inline(always)]
pub unsafe fn step<R: Elements, const ROW: usize, const W: usize>(
    sums: &mut [Sums<R>; W],
    a: *const f32,
    b: [*const f32; W],
) {
    for (sums, b) in sums.iter_mut().zip(b) {
        // SAFETY: by this function's contract.
        unsafe {
            let right = R::load(b);
            for (r, sum) in sums.iter_mut().enumerate() {
                *sum = R::splat(*a.add(r * ROW)).fma(right, *sum);
            }
        }
    }
}
