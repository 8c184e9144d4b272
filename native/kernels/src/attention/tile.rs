//! Attention's products on the register tile: six rows of C, sixteen columns after the other, or eight where no more are
//! wanted. Unlike in `gemm` the left operand is not packed: weights are read where they were computed, along rows or
//! down columns, so its strides are constants of the type.
//!
//! Packed operands come in two forms (see `pack`): *columns*, `[width/16][BLOCK][16]`, serves as a left operand of scores
//! and as a right operand of products; *transposed*, `[rows/16][width][16]`, is the right operand of scores.

use super::pack::PANEL;
use crate::simd::tile::{MR, NR, Sums, panel_steps, step, steps};
use crate::simd::{Kernel, LANES, Simd, dispatch};

/// `C[6, cols] (+)= A[6, depth] B[depth, cols]`; A(r, k) = a[r * ROW + k * STEP], B in column form.
#[derive(Clone, Copy)]
pub struct Product<const ROW: usize, const STEP: usize> {
    pub depth: usize,
    pub a: *const f32,
    pub b: *const f32,
    pub c: *mut f32,
    /// Floats from one row of C to the next; there is room for whole vectors.
    pub stride: usize,
    pub add: bool,
    /// Columns wanted; of the last sixteen only half are computed if no more are.
    pub cols: usize,
}

/// `C[6, cols] (+)= A[6, depth] B[depth, cols]`, A in column form, B transposed.
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
    /// The operands hold `depth` steps, C has room for 6 x `cols` rounded up to 8, this CPU has `V`'s instructions.
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
        for at in (0..self.cols).step_by(NR) {
            unsafe {
                let (b, c) = (self.b.add(at / NR * PANEL), self.c.add(at));
                if self.cols - at > LANES {
                    let mut sums = [[V::zero(); 2]; MR];
                    steps::<V, ROW, STEP>(&mut sums, self.depth, self.a, b);
                    store(sums, c, self.stride, self.add);
                } else {
                    let mut sums = [[V::zero(); 1]; MR];
                    half_steps::<V, ROW, STEP>(&mut sums, self.depth, self.a, b);
                    store(sums, c, self.stride, self.add);
                }
            }
        }
    }
}

impl Kernel for Scores {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        let deep = self.depth.next_multiple_of(LANES);
        for at in (0..self.cols).step_by(NR) {
            unsafe {
                let (b, c) = (self.b.add(at * deep), self.c.add(at));
                if self.cols - at > LANES {
                    let mut sums = [[V::zero(); 2]; MR];
                    panel_steps::<V, PANEL>(&mut sums, self.depth, self.a, b);
                    store(sums, c, self.stride, self.add);
                } else {
                    let mut sums = [[V::zero(); 1]; MR];
                    for k in (0..self.depth).step_by(NR) {
                        let (depth, a) = (NR.min(self.depth - k), self.a.add(k / NR * PANEL));
                        half_steps::<V, NR, 1>(&mut sums, depth, a, b.add(k * NR));
                    }
                    store(sums, c, self.stride, self.add);
                }
            }
        }
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
