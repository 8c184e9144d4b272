//! Copies a block of rows of one head into the two forms the tile reads, zero-filled at the edges, and writes results
//! back. Sources and targets are views with any stride; packed memory is dense, so strides that are powers of two do not
//! thrash the first-level cache while the block is used.

use super::plan::BLOCK;
use super::tile::NR;
use crate::mat::{Mat, MatMut};
use crate::simd::{LANES, Simd};

/// Floats from one panel of the column form to the next.
pub const PANEL: usize = BLOCK * NR;

/// Rows `[row, row + rows)` and columns `[col, col + width)` of a view.
#[derive(Clone, Copy)]
pub struct Part<M> {
    pub of: M,
    pub row: usize,
    pub rows: usize,
    pub col: usize,
    pub width: usize,
}

impl Part<Mat> {
    #[inline(always)]
    unsafe fn at(&self, row: usize, col: usize) -> *const f32 {
        unsafe { self.of.ptr.add((self.row + row) * self.of.stride + self.col + col) }
    }

    /// Column form `[width/16][BLOCK][16]`, every element times `scale`; rows up to `padded` are zero.
    #[inline(always)]
    pub unsafe fn columns<V: Simd>(self, padded: usize, scale: f32, to: *mut f32) {
        unsafe {
            let scale = V::splat(scale);
            for row in 0..padded {
                for col in (0..self.width.next_multiple_of(NR)).step_by(LANES) {
                    let to = to.add(col / NR * PANEL + row * NR + col % NR);
                    if row < self.rows && col < self.width {
                        V::load_upto(self.at(row, col), self.width - col).mul(scale).store(to);
                    } else {
                        V::zero().store(to);
                    }
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
                    for (r, lanes) in rows.iter_mut().enumerate().take(self.rows.saturating_sub(row)) {
                        *lanes = V::load_upto(self.at(row + r, col), self.width - col);
                    }
                    let to = to.add(row / NR * deep * NR + col * NR + row % NR);
                    for (c, column) in V::transpose(rows).into_iter().enumerate() {
                        column.store(to.add(c * NR));
                    }
                }
            }
        }
    }
}

impl Part<MatMut> {
    /// Writes (or adds) `scale` times the rows at `from`, `stride` floats apart.
    #[inline(always)]
    pub unsafe fn receive<V: Simd>(self, from: *const f32, stride: usize, scale: f32, add: bool) {
        unsafe {
            let scale = V::splat(scale);
            for row in 0..self.rows {
                let to = self.of.ptr.add((self.row + row) * self.of.stride + self.col);
                for col in (0..self.width).step_by(LANES) {
                    let (to, left) = (to.add(col), self.width - col);
                    let x = V::load(from.add(row * stride + col)).mul(scale);
                    let x = if add { V::load_upto(to, left).add(x) } else { x };
                    x.store_upto(to, left);
                }
            }
        }
    }
}
