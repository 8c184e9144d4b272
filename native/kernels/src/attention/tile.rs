//! The register tile of attention: 6 x 16 of C in 12 registers, or 6 x 8 where only half is wanted. Unlike the tile of
//! `gemm` its left operand is not packed: weights are read where they were computed, along rows or down columns, so its
//! strides are constants of the type.
//!
//! Packed operands come in two forms (see `pack`): *columns*, `[width/16][BLOCK][16]`, serves as a left operand of scores
//! and as a right operand of products; *transposed*, `[rows/16][width][16]`, is the right operand of scores.

use super::pack::PANEL;
use crate::simd::tile::{MR, NR, Sums, step, steps};
use crate::simd::{Kernel, LANES, Simd, dispatch};

/// `C[6, 16] (+)= A[6, depth] B[depth, 16]`; A(r, k) = a[r * ROW + k * STEP], B row-major with 16 to a row.
#[derive(Clone, Copy)]
pub struct Product<const ROW: usize, const STEP: usize> {
    pub depth: usize,
    pub a: *const f32,
    pub b: *const f32,
    pub c: *mut f32,
    /// Floats from one row of C to the next.
    pub stride: usize,
    pub add: bool,
    /// Columns wanted, 1..=16; with at most 8 only half the work is done.
    pub cols: usize,
}

/// `C[6, 16] (+)= A[6, depth] B[depth, 16]`, A in column form, B transposed.
#[derive(Clone, Copy)]
pub struct Scores {
    pub depth: usize,
    pub a: *const f32,
    pub b: *const f32,
    pub c: *mut f32,
    pub stride: usize,
    pub add: bool,
    pub cols: usize,
}

impl<const ROW: usize, const STEP: usize> Product<ROW, STEP> {
    /// # Safety
    /// The operands hold `depth` steps, C has room for 6 x 16 (6 x 8 if `cols` <= 8), this CPU has `V`'s instructions.
    #[inline(always)]
    pub unsafe fn compute<V: Simd>(self) {
        unsafe { dispatch(V::ISA, self) }
    }
}

impl Scores {
    /// # Safety
    /// As [`Product::compute`].
    #[inline(always)]
    pub unsafe fn compute<V: Simd>(self) {
        unsafe { dispatch(V::ISA, self) }
    }
}

impl<const ROW: usize, const STEP: usize> Kernel for Product<ROW, STEP> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        unsafe {
            if self.cols > LANES {
                let mut c = [[V::zero(); 2]; MR];
                steps::<V, ROW, STEP>(&mut c, self.depth, self.a, self.b);
                store(c, self.c, self.stride, self.add);
            } else {
                let mut c = [[V::zero(); 1]; MR];
                half_steps::<V, ROW, STEP>(&mut c, self.depth, self.a, self.b);
                store(c, self.c, self.stride, self.add);
            }
        }
    }
}

impl Kernel for Scores {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        unsafe {
            if self.cols > LANES {
                let mut c = [[V::zero(); 2]; MR];
                for (depth, a, b) in self.panels() {
                    steps::<V, NR, 1>(&mut c, depth, a, b);
                }
                store(c, self.c, self.stride, self.add);
            } else {
                let mut c = [[V::zero(); 1]; MR];
                for (depth, a, b) in self.panels() {
                    half_steps::<V, NR, 1>(&mut c, depth, a, b);
                }
                store(c, self.c, self.stride, self.add);
            }
        }
    }
}

impl Scores {
    /// The depth in panels of sixteen: how deep each is, and its operands.
    #[inline(always)]
    fn panels(self) -> impl Iterator<Item = (usize, *const f32, *const f32)> {
        (0..self.depth).step_by(NR).map(move |at| {
            let depth = NR.min(self.depth - at);
            (
                depth,
                self.a.wrapping_add(at / NR * PANEL),
                self.b.wrapping_add(at * NR),
            )
        })
    }
}

/// [`steps`] on the first half of the columns.
#[inline(always)]
unsafe fn half_steps<V: Simd, const ROW: usize, const STEP: usize>(
    sums: &mut Sums<V, 1>,
    depth: usize,
    a: *const f32,
    b: *const f32,
) {
    for k in 0..depth {
        unsafe { step::<V, 1, ROW>(sums, a.add(k * STEP), b.add(k * NR)) };
    }
}

#[inline(always)]
unsafe fn store<V: Simd, const WIDE: usize>(tile: [[V; WIDE]; MR], c: *mut f32, stride: usize, add: bool) {
    for (r, row) in tile.into_iter().enumerate() {
        for (w, x) in row.into_iter().enumerate() {
            unsafe {
                let to = c.add(r * stride + w * LANES);
                if add { V::load(to).add(x).store(to) } else { x.store(to) }
            }
        }
    }
}
