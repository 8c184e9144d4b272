//! The register tile of attention: 6 x 16 of C in 12 registers, or 6 x 8 where only half is wanted. Unlike the tile of
//! `gemm` its left operand is not packed: weights are read where they were computed, along rows or down columns, so its
//! strides are constants of the type.
//!
//! Packed operands come in two forms (see `pack`): *columns*, `[width/16][BLOCK][16]`, serves as a left operand of scores
//! and as a right operand of products; *transposed*, `[rows/16][width][16]`, is the right operand of scores.

use super::pack::PANEL;
use crate::simd::{Kernel, LANES, Simd, dispatch};

/// Rows of the tile.
pub const MR: usize = 6;
/// Columns of the tile, and of a packed panel.
pub const NR: usize = 2 * LANES;

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
                steps::<V, 2, ROW, STEP>(&mut c, self.depth, self.a, self.b);
                store(c, self.c, self.stride, self.add);
            } else {
                let mut c = [[V::zero(); 1]; MR];
                steps::<V, 1, ROW, STEP>(&mut c, self.depth, self.a, self.b);
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
                self.panels(&mut c);
                store(c, self.c, self.stride, self.add);
            } else {
                let mut c = [[V::zero(); 1]; MR];
                self.panels(&mut c);
                store(c, self.c, self.stride, self.add);
            }
        }
    }
}

impl Scores {
    #[inline(always)]
    unsafe fn panels<V: Simd, const WIDE: usize>(&self, c: &mut [[V; WIDE]; MR]) {
        let (mut a, mut b, mut left) = (self.a, self.b, self.depth);
        while left > 0 {
            let depth = left.min(NR);
            unsafe { steps::<V, WIDE, NR, 1>(c, depth, a, b) };
            (a, b) = (a.wrapping_add(PANEL), b.wrapping_add(NR * NR));
            left -= depth;
        }
    }
}

/// Steps of the depth per loop turn.
const UNROLL: usize = 4;

#[inline(always)]
unsafe fn steps<V: Simd, const WIDE: usize, const ROW: usize, const STEP: usize>(
    c: &mut [[V; WIDE]; MR],
    depth: usize,
    mut a: *const f32,
    mut b: *const f32,
) {
    unsafe {
        for _ in 0..depth / UNROLL {
            for u in 0..UNROLL {
                step::<V, WIDE, ROW>(c, a.add(u * STEP), b.add(u * NR));
            }
            (a, b) = (a.add(UNROLL * STEP), b.add(UNROLL * NR));
        }
        for _ in 0..depth % UNROLL {
            step::<V, WIDE, ROW>(c, a, b);
            (a, b) = (a.add(STEP), b.add(NR));
        }
    }
}

#[inline(always)]
unsafe fn step<V: Simd, const WIDE: usize, const ROW: usize>(c: &mut [[V; WIDE]; MR], a: *const f32, b: *const f32) {
    unsafe {
        let mut row = [V::zero(); WIDE];
        for (w, lanes) in row.iter_mut().enumerate() {
            *lanes = V::load(b.add(w * LANES));
        }
        for (r, c) in c.iter_mut().enumerate() {
            let x = V::splat(*a.add(r * ROW));
            for (c, b) in c.iter_mut().zip(row) {
                *c = x.fma(b, *c);
            }
        }
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
