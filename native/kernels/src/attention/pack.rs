//! Copies a block of rows of one head into the two forms the tile reads, zero-filled at the edges, and writes results
//! back. Sources and targets are views with any stride; packed memory is dense, so strides that are powers of two do not
//! thrash the first-level cache while the block is used.

use super::plan::BLOCK;
use crate::panels::{Panels, Place};
use crate::simd::tile::NR;
use crate::simd::{LANES, LINE, Simd};

/// Floats from one panel of the column form to the next.
pub const PANEL: usize = BLOCK * NR;

/// How many rows ahead the next ones are fetched: with strides that are powers of two, eight rows fill a set of the
/// first-level cache.
const AHEAD: usize = 12;

/// Rows `[row, row + rows)` and columns `[col, col + width)` of a view; the columns lie together.
#[derive(Clone, Copy)]
pub struct Part {
    pub of: Panels,
    pub row: usize,
    pub rows: usize,
    pub col: usize,
    pub width: usize,
}

impl Part {
    #[inline(always)]
    fn at(&self, row: usize, col: usize) -> *mut f32 {
        self.of.at(self.row + row, self.col).wrapping_add(col)
    }

    /// Column form `[width/16][BLOCK][16]`, every element times `scale`; rows up to `padded` are zero.
    #[inline(always)]
    pub unsafe fn columns<V: Simd>(self, padded: usize, scale: f32, to: *mut f32) {
        unsafe {
            let scale = V::splat(scale);
            for row in 0..self.rows {
                for col in (0..self.width).step_by(NR) {
                    let (from, left) = (self.at(row, col).cast_const(), self.width - col);
                    V::prefetch(from.wrapping_add(AHEAD * self.of.stride));
                    let (low, high) = match left >= NR {
                        true => (V::load(from), V::load(from.add(LANES))),
                        false => (
                            V::load_upto(from, left),
                            V::load_part(from.wrapping_add(LANES), left.saturating_sub(LANES)),
                        ),
                    };
                    let to = to.add(col * BLOCK + row * NR);
                    low.mul(scale).store(to);
                    high.mul(scale).store(to.add(LANES));
                }
            }
            for col in (0..self.width).step_by(NR) {
                for row in self.rows..padded {
                    let to = to.add(col * BLOCK + row * NR);
                    V::zero().store(to);
                    V::zero().store(to.add(LANES));
                }
            }
        }
    }

    /// Transposed form `[padded/16][width][16]`; rows up to `padded`, a multiple of 16, are zero. A panel has room for
    /// its width rounded up to 8.
    #[inline(always)]
    pub unsafe fn transposed<V: Simd>(self, padded: usize, to: *mut f32) {
        unsafe {
            let deep = self.width.next_multiple_of(LANES);
            for row in (0..padded).step_by(LANES) {
                for col in (0..self.width).step_by(LANES) {
                    let mut rows = [V::zero(); LANES];
                    if row + LANES <= self.rows && col + LANES <= self.width {
                        for (r, lanes) in rows.iter_mut().enumerate() {
                            *lanes = V::load(self.at(row + r, col));
                            if col % LINE == 0 {
                                V::prefetch(self.at(row + r, col).wrapping_add(AHEAD * self.of.stride));
                            }
                        }
                    } else {
                        for (r, lanes) in rows.iter_mut().enumerate().take(self.rows.saturating_sub(row)) {
                            *lanes = V::load_upto(self.at(row + r, col), self.width - col);
                        }
                    }
                    let to = to.add(row / NR * deep * NR + col * NR + row % NR);
                    for (c, column) in V::transpose(rows).into_iter().enumerate() {
                        column.store(to.add(c * NR));
                    }
                }
            }
        }
    }

    #[inline(always)]
    pub unsafe fn zero(self) {
        for row in 0..self.rows {
            unsafe { std::slice::from_raw_parts_mut(self.at(row, 0), self.width).fill(0.0) };
        }
    }

    /// Writes (or adds) `scale` times the rows at `from`, `stride` floats apart.
    #[inline(always)]
    pub unsafe fn receive<V: Simd>(self, from: *const f32, stride: usize, scale: f32, add: bool) {
        unsafe {
            let scale = V::splat(scale);
            for row in 0..self.rows {
                let to = self.at(row, 0);
                for line in (0..self.width).step_by(LINE) {
                    V::prefetch(to.wrapping_add(AHEAD * self.of.stride + line));
                    for col in (line..self.width.min(line + LINE)).step_by(LANES) {
                        let (to, left) = (to.add(col), self.width - col);
                        let x = V::load(from.add(row * stride + col)).mul(scale);
                        let x = if add { V::load_upto(to, left).add(x) } else { x };
                        x.store_upto(to, left);
                    }
                }
            }
        }
    }
}
