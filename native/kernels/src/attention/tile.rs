//! Attention's products on the register tile: six rows of C at a time against 16 columns of B, which stay in L1, or against 8 if
//! no more are needed. Unlike in `gemm` the left operand is not packed: weights are read where they were computed, by rows or
//! by columns, so its strides are constants of the type.
//!
//! Operands come in two forms (see `pack`): *columns*, `[width/16][rows][16]`, serves as a left operand of scores and as a
//! right operand of products; *transposed*, `[rows/16][width][16]`, is the right operand of scores.

use super::pack::ColumnForm;
use super::plan::BLOCK;
use crate::simd::tile::{MR, NR, Sums, panel_steps, step, steps};
use crate::simd::{Kernel, LANES, Simd, dispatch};

/// A limit that grows by one per row, as in causal attention, clamped to `0..=most`.
#[derive(Clone, Copy)]
pub struct Slope {
    /// At the first row.
    pub first: isize,
    pub most: usize,
}

impl Slope {
    /// The same limit for every row.
    pub fn flat(most: usize) -> Slope {
        let first = most as isize;
        Slope { first, most }
    }

    /// How many of `most` keys from position `key` on are visible to six queries, the first of which is at position `query`.
    pub fn seen(query: usize, key: usize, most: usize) -> Slope {
        let first = (query + MR) as isize - key as isize;
        Slope { first, most }
    }

    #[inline(always)]
    pub fn at(&self, row: usize) -> usize {
        (self.first + row as isize).clamp(0, self.most as isize) as usize
    }
}

/// `C[rows, cols] (+)= A[rows, depth] B[depth, cols]`; A(r, k) = a[r * ROW + k * STEP], B in column form.
#[derive(Clone, Copy)]
pub struct Product<const ROW: usize, const STEP: usize> {
    /// A multiple of six.
    pub rows: usize,
    /// Start and end of the depth of six rows; outside it is zero.
    pub from: Slope,
    pub until: Slope,
    pub a: *const f32,
    pub b: ColumnForm,
    pub c: *mut f32,
    /// Row stride of C in floats; rows have room for whole vectors.
    pub stride: usize,
    pub add: bool,
    /// Columns to compute; of the last 16, only 8 if no more are needed.
    pub cols: usize,
}

/// `C[rows, cols] = A[rows, depth] B[depth, cols] (+ P)`, A in column form, B transposed.
#[derive(Clone, Copy)]
pub struct Scores {
    /// A multiple of six.
    pub rows: usize,
    pub depth: usize,
    pub a: ColumnForm,
    pub b: *const f32,
    /// Rows of P are [`BLOCK`] apart; null for none.
    pub plus: *const f32,
    pub c: *mut f32,
    pub stride: usize,
    /// Columns to compute, by group of six rows.
    pub cols: Slope,
}

impl<const ROW: usize, const STEP: usize> Product<ROW, STEP> {
    /// # Safety
    /// The operands hold the depth, C has room for `cols` rounded up to 8, this CPU has `V`'s instructions.
    #[inline(always)]
    pub unsafe fn compute<V: Simd>(self) {
        // SAFETY: by this function's contract.
        unsafe { dispatch(V::ISA, self) }
    }
}

impl Scores {
    /// # Safety
    /// As [`Product::compute`].
    #[inline(always)]
    pub unsafe fn compute<V: Simd>(self) {
        // SAFETY: by this function's contract.
        unsafe { dispatch(V::ISA, self) }
    }
}

impl<const ROW: usize, const STEP: usize> Kernel for Product<ROW, STEP> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        for at in (0..self.cols).step_by(NR) {
            for row in (0..self.rows).step_by(MR) {
                let (from, until) = (self.from.at(row), self.until.at(row));
                let depth = until.saturating_sub(from);
                if depth == 0 && self.add {
                    continue;
                }
                // SAFETY: by the contract of `dispatch`.
                unsafe {
                    let a = self.a.wrapping_add(row * ROW + from * STEP);
                    let b = self.b.at(from, at);
                    let c = self.c.add(row * self.stride + at);
                    let plus = if self.add { c.cast_const() } else { std::ptr::null() };
                    if self.cols - at > LANES {
                        let mut sums = [[V::zero(); 2]; MR];
                        steps::<V, ROW, STEP>(&mut sums, depth, a, b);
                        store(sums, c, self.stride, plus, self.stride);
                    } else {
                        let mut sums = [[V::zero(); 1]; MR];
                        half_steps::<V, ROW, STEP>(&mut sums, depth, a, b);
                        store(sums, c, self.stride, plus, self.stride);
                    }
                }
            }
        }
    }
}

impl Kernel for Scores {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        let deep = self.depth.next_multiple_of(LANES);
        for at in (0..self.cols.at(self.rows - MR)).step_by(NR) {
            for row in (0..self.rows).step_by(MR) {
                let cols = self.cols.at(row).saturating_sub(at);
                if cols == 0 {
                    continue;
                }
                // SAFETY: by the contract of `dispatch`.
                unsafe {
                    let (a, b) = (self.a.at(row, 0), self.b.add(at * deep));
                    let c = self.c.add(row * self.stride + at);
                    let plus = match self.plus.is_null() {
                        true => self.plus,
                        false => self.plus.add(row * BLOCK + at),
                    };
                    if cols > LANES {
                        let mut sums = [[V::zero(); 2]; MR];
                        panel_steps::<V>(&mut sums, self.depth, self.a.step, a, b);
                        store(sums, c, self.stride, plus, BLOCK);
                    } else {
                        let mut sums = [[V::zero(); 1]; MR];
                        for k in (0..self.depth).step_by(NR) {
                            let depth = NR.min(self.depth - k);
                            half_steps::<V, NR, 1>(&mut sums, depth, self.a.at(row, k), b.add(k * NR));
                        }
                        store(sums, c, self.stride, plus, BLOCK);
                    }
                }
            }
        }
    }
}

/// [`steps`] on the first half of the columns.
///
/// # Safety
/// As [`steps`].
#[inline(always)]
unsafe fn half_steps<V: Simd, const ROW: usize, const STEP: usize>(
    sums: &mut Sums<V, 1>,
    depth: usize,
    a: *const f32,
    b: *const f32,
) {
    for k in 0..depth {
        // SAFETY: by this function's contract.
        unsafe { step::<V, 1, ROW>(sums, a.add(k * STEP), b.add(k * NR)) };
    }
}

/// Writes a tile, plus the values at `plus` unless null.
///
/// # Safety
/// This CPU has `V`'s instructions; `c` and, unless null, `plus` have room for the tile at their strides.
#[inline(always)]
unsafe fn store<V: Simd, const WIDE: usize>(
    tile: [[V; WIDE]; MR],
    c: *mut f32,
    stride: usize,
    plus: *const f32,
    plus_stride: usize,
) {
    for (r, row) in tile.into_iter().enumerate() {
        for (w, x) in row.into_iter().enumerate() {
            // SAFETY: by this function's contract.
            unsafe {
                let to = c.add(r * stride + w * LANES);
                if plus.is_null() {
                    x.store(to)
                } else {
                    V::load(plus.add(r * plus_stride + w * LANES)).add(x).store(to)
                }
            }
        }
    }
}
