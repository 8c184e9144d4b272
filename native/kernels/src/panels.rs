//! A matrix that may come in panels: all rows of its first sixteen columns, then all rows of the next ones. That is the form
//! in which attention multiplies queries and values, so those of a projection laid down like this are read where they are;
//! rows of a wide matrix lie kilobytes apart, and would have to be gathered first. A plain matrix, or a column range of
//! one, is a single panel.
//!
//! Fused layers are compiled for both kinds ([`Place`]): finding a panel takes a few instructions, which narrow models
//! would pay for nothing.

use crate::mat::{Grad, Mat, MatMut};
use crate::simd::tile::{MR, NR};

/// View of `rows` x `cols` floats, to read or to write; who dereferences it upholds what [`Mat`] and [`MatMut`] say.
#[derive(Clone, Copy, Debug)]
pub struct Panels {
    pub ptr: *mut f32,
    pub rows: usize,
    pub cols: usize,
    /// Floats from one row of a panel to the next.
    pub stride: usize,
    /// Floats from sixteen columns of a row to the next sixteen: sixteen, or the length of a panel.
    pub step: usize,
}

// SAFETY: an address and a shape, as [`Mat`].
unsafe impl Send for Panels {}
unsafe impl Sync for Panels {}

impl Panels {
    /// Columns of a panel.
    pub const WIDTH: usize = NR;
    /// Rows after the last one of a panel, of no meaning: tiles that begin before the end may read on.
    pub const SPARE: usize = MR - 1;

    /// Floats of a panel.
    pub fn size(rows: usize) -> usize {
        (rows + Panels::SPARE) * Panels::WIDTH
    }

    /// Panels from `ptr` on, one behind the other, each of [`Panels::size`]; `cols` is a multiple of their width.
    pub fn new(ptr: *mut f32, rows: usize, cols: usize) -> Panels {
        assert!(cols.is_multiple_of(Panels::WIDTH));
        Panels {
            ptr,
            rows,
            cols,
            stride: Panels::WIDTH,
            step: Panels::size(rows),
        }
    }

    /// The matrix, if it is in one piece.
    pub fn plain(self) -> Option<MatMut> {
        (self.step == Panels::WIDTH).then_some(MatMut {
            ptr: self.ptr,
            rows: self.rows,
            cols: self.cols,
            stride: self.stride,
        })
    }
}

/// Where the elements of a matrix lie.
pub trait Place: Copy + Sync {
    /// Address of element `(i, j)`. The rest of its cache line's worth of columns, from a multiple of 16 on, follows it.
    fn at(self, i: usize, j: usize) -> *mut f32;
    /// Floats from there to the next row.
    fn stride(self) -> usize;
    /// Whether columns `[j, j + n)` of a row lie together.
    fn together(self, j: usize, n: usize) -> bool;
    /// Whether sixteen columns of a row are followed by those of the next.
    fn in_panels(self) -> bool;
}

impl Place for Panels {
    #[inline(always)]
    fn at(self, i: usize, j: usize) -> *mut f32 {
        self.ptr
            .wrapping_add(i * self.stride + j / Panels::WIDTH * self.step + j % Panels::WIDTH)
    }
    #[inline(always)]
    fn stride(self) -> usize {
        self.stride
    }
    #[inline(always)]
    fn together(self, j: usize, n: usize) -> bool {
        !self.in_panels() || n == 0 || j / Panels::WIDTH == (j + n - 1) / Panels::WIDTH
    }
    #[inline(always)]
    fn in_panels(self) -> bool {
        self.step != Panels::WIDTH
    }
}

impl Place for MatMut {
    #[inline(always)]
    fn at(self, i: usize, j: usize) -> *mut f32 {
        MatMut::at(self, i, j)
    }
    #[inline(always)]
    fn stride(self) -> usize {
        self.stride
    }
    #[inline(always)]
    fn together(self, _j: usize, _n: usize) -> bool {
        true
    }
    #[inline(always)]
    fn in_panels(self) -> bool {
        false
    }
}

impl From<Mat> for Panels {
    fn from(mat: Mat) -> Panels {
        Panels {
            ptr: mat.ptr.cast_mut(),
            rows: mat.rows,
            cols: mat.cols,
            stride: mat.stride,
            step: Panels::WIDTH,
        }
    }
}

impl From<MatMut> for Panels {
    fn from(mat: MatMut) -> Panels {
        mat.as_ref().into()
    }
}

impl From<Grad> for Grad<Panels> {
    fn from(Grad { to, accumulate }: Grad) -> Grad<Panels> {
        Grad {
            to: to.into(),
            accumulate,
        }
    }
}

#[cfg(test)]
mod tests;
