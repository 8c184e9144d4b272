//! Attention's products on the register tile: six rows of C at a time against 16 columns of B, which stay in L1, against 32 where the
//! instruction set computes two tiles at once, or against 8 if no more are needed. Unlike in `gemm` the left operand is not packed: weights are read where they were computed, by rows or
//! by columns, so its strides are constants of the type.
//!
//! Operands come in two forms (see `pack`): *columns*, `[width/16][rows][16]`, serves as a left operand of scores and as a
//! right operand of products; *transposed*, `[rows/16][width][16]`, is the right operand of scores.

use super::pack::ColumnForm;
use super::plan::BLOCK;
use crate::simd::tile::{MR, NR, Sums, panel_steps, step, steps};
use crate::simd::{Elements, Kernel, LANES, Simd, dispatch};
use std::array::from_fn;

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

/// What is computed at once of `cols` columns that are left.
enum Width {
    Two,
    One,
    Half,
}

impl Width {
    #[inline(always)]
    fn of<V: Simd>(cols: usize) -> Width {
        match cols {
            // Not the half of a second tile: C has no room for the rest of it.
            cols if cols > NR + LANES && V::ISA.tiles() == 2 => Width::Two,
            cols if cols > LANES => Width::One,
            _ => Width::Half,
        }
    }

    #[inline(always)]
    fn cols(&self) -> usize {
        match self {
            Width::Two => 2 * NR,
            Width::One | Width::Half => NR,
        }
    }
}

impl<const ROW: usize, const STEP: usize> Kernel for Product<ROW, STEP> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        let mut at = 0;
        while at < self.cols {
            let width = Width::of::<V>(self.cols - at);
            for row in (0..self.rows).step_by(MR) {
                let (from, until) = (self.from.at(row), self.until.at(row));
                let depth = until.saturating_sub(from);
                if depth == 0 && self.add {
                    continue;
                }
                let a = self.a.wrapping_add(row * ROW + from * STEP);
                let c = self.c.wrapping_add(row * self.stride + at);
                let plus = if self.add { c.cast_const() } else { std::ptr::null() };
                // SAFETY: by the contract of `dispatch`.
                unsafe {
                    match width {
                        Width::Two => {
                            let mut sums = [[V::Line::zero(); MR]; 2];
                            let b = from_fn(|w| self.b.at(from, at + w * NR));
                            steps::<V, ROW, STEP, 2>(&mut sums, depth, a, b);
                            store(sums, c, self.stride, plus, self.stride);
                        }
                        Width::One => {
                            let mut sums = [[V::Line::zero(); MR]];
                            steps::<V, ROW, STEP, 1>(&mut sums, depth, a, [self.b.at(from, at)]);
                            store(sums, c, self.stride, plus, self.stride);
                        }
                        Width::Half => {
                            let mut sums = [[V::zero(); MR]];
                            half_steps::<V, ROW, STEP>(&mut sums, depth, a, self.b.at(from, at));
                            store(sums, c, self.stride, plus, self.stride);
                        }
                    }
                }
            }
            at += width.cols();
        }
    }
}

impl Kernel for Scores {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        let deep = self.depth.next_multiple_of(LANES);
        // By pairs of tiles, so that both parts of B stay in L1; of the later rows both are needed, of earlier ones perhaps less.
        for pair in (0..self.cols.at(self.rows - MR)).step_by(2 * NR) {
            for row in (0..self.rows).step_by(MR) {
                let until = self.cols.at(row).min(pair + 2 * NR);
                let mut at = pair;
                while at < until {
                    let width = Width::of::<V>(until - at);
                    let (a, b) = (self.a.at(row, 0), self.b.wrapping_add(at * deep));
                    let c = self.c.wrapping_add(row * self.stride + at);
                    let plus = match self.plus.is_null() {
                        true => self.plus,
                        false => self.plus.wrapping_add(row * BLOCK + at),
                    };
                    // SAFETY: by the contract of `dispatch`.
                    unsafe {
                        match width {
                            Width::Two => {
                                let mut sums = [[V::Line::zero(); MR]; 2];
                                let b = [b, b.wrapping_add(NR * deep)];
                                panel_steps::<V, 2>(&mut sums, self.depth, self.a.step, a, b);
                                store(sums, c, self.stride, plus, BLOCK);
                            }
                            Width::One => {
                                let mut sums = [[V::Line::zero(); MR]];
                                panel_steps::<V, 1>(&mut sums, self.depth, self.a.step, a, [b]);
                                store(sums, c, self.stride, plus, BLOCK);
                            }
                            Width::Half => {
                                let mut sums = [[V::zero(); MR]];
                                for k in (0..self.depth).step_by(NR) {
                                    let depth = NR.min(self.depth - k);
                                    half_steps::<V, NR, 1>(&mut sums, depth, self.a.at(row, k), b.add(k * NR));
                                }
                                store(sums, c, self.stride, plus, BLOCK);
                            }
                        }
                    }
                    at += width.cols();
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
    sums: &mut [Sums<V>; 1],
    depth: usize,
    a: *const f32,
    b: *const f32,
) {
    for k in 0..depth {
        // SAFETY: by this function's contract.
        unsafe { step::<V, ROW, 1>(sums, a.add(k * STEP), [b.add(k * NR)]) };
    }
}

/// Writes tiles side by side, plus the values at `plus` unless null.
///
/// # Safety
/// Called from a SIMD entry point; `c` and, unless null, `plus` have room for the tiles at their strides.
#[inline(always)]
unsafe fn store<R: Elements, const W: usize>(
    tiles: [Sums<R>; W],
    c: *mut f32,
    stride: usize,
    plus: *const f32,
    plus_stride: usize,
) {
    for (w, tile) in tiles.into_iter().enumerate() {
        for (r, row) in tile.into_iter().enumerate() {
            // SAFETY: by this function's contract.
            unsafe {
                let to = c.add(r * stride + w * NR);
                if plus.is_null() {
                    row.store(to)
                } else {
                    R::load(plus.add(r * plus_stride + w * NR)).add(row).store(to)
                }
            }
        }
    }
}
