//! Matrices in panels: all rows of the first sixteen columns, then all rows of the next sixteen. Attention multiplies queries and
//! values in this form, so a projection in panels is read in place; rows of a wide matrix have a stride of kilobytes and would
//! have to be gathered first. A plain matrix, or a column range of one, is a single panel.
//!
//! Fused layers are compiled for both layouts ([`Place`]), so that narrow models do not pay for the panel addressing.

use crate::mat::{Grad, Mat, MatMut};
use crate::simd::tile::{MR, NR};

/// View of `rows` x `cols` floats by an address of type `P`; see [`Panels`] and [`PanelsMut`].
#[derive(Clone, Copy, Debug)]
pub struct PanelView<P> {
    pub ptr: P,
    pub rows: usize,
    pub cols: usize,
    /// Row stride within a panel, in floats.
    pub stride: usize,
    /// Floats between consecutive groups of 16 columns of a row: 16, or the size of a panel.
    pub step: usize,
}

/// Read-only view; dereferencing has the requirements of [`Mat`].
pub type Panels = PanelView<*const f32>;
/// Writable view; dereferencing has the requirements of [`MatMut`].
pub type PanelsMut = PanelView<*mut f32>;

// SAFETY: an address and a shape, as [`Mat`] and [`MatMut`].
unsafe impl<P> Send for PanelView<P> {}
// SAFETY: as above.
unsafe impl<P> Sync for PanelView<P> {}

impl Panels {
    /// Columns per panel.
    pub const WIDTH: usize = NR;
    /// Padding rows after the last one of a panel, so that a tile that begins before the end may read past it.
    pub const SPARE: usize = MR - 1;

    /// Size of a panel in floats.
    pub fn size(rows: usize) -> usize {
        (rows + Panels::SPARE) * Panels::WIDTH
    }

    /// The row-major matrix, if it is not in panels.
    pub fn plain(self) -> Option<Mat> {
        (!self.is_panels()).then_some(Mat {
            ptr: self.ptr,
            rows: self.rows,
            cols: self.cols,
            stride: self.stride,
        })
    }
}

impl<P> PanelView<P> {
    /// Consecutive panels from `ptr` on, each of [`Panels::size`]; `cols` is a multiple of their width.
    pub fn new(ptr: P, rows: usize, cols: usize) -> Self {
        assert!(cols.is_multiple_of(Panels::WIDTH));
        PanelView {
            ptr,
            rows,
            cols,
            stride: Panels::WIDTH,
            step: Panels::size(rows),
        }
    }

    #[inline(always)]
    fn is_panels(&self) -> bool {
        self.step != Panels::WIDTH
    }

    #[inline(always)]
    fn offset(&self, i: usize, j: usize) -> usize {
        i * self.stride + j / Panels::WIDTH * self.step + j % Panels::WIDTH
    }

    #[inline(always)]
    fn one_panel(&self, j: usize, n: usize) -> bool {
        !self.is_panels() || n == 0 || j / Panels::WIDTH == (j + n - 1) / Panels::WIDTH
    }
}

impl PanelsMut {
    /// The same memory, read-only.
    pub fn as_ref(self) -> Panels {
        PanelView {
            ptr: self.ptr.cast_const(),
            rows: self.rows,
            cols: self.cols,
            stride: self.stride,
            step: self.step,
        }
    }

    /// The row-major matrix, if it is not in panels.
    pub fn plain(self) -> Option<MatMut> {
        (!self.is_panels()).then_some(MatMut {
            ptr: self.ptr,
            rows: self.rows,
            cols: self.cols,
            stride: self.stride,
        })
    }
}

/// Addressing of a matrix's elements.
pub trait Place: Copy + Sync {
    /// Address of element `(i, j)`. The rest of its sixteen columns, counted from a multiple of 16, follows it.
    fn at(self, i: usize, j: usize) -> *const f32;
    /// Row stride in floats.
    fn stride(self) -> usize;
    /// Whether columns `[j, j + n)` of a row are contiguous.
    #[inline(always)]
    fn together(self, _j: usize, _n: usize) -> bool {
        true
    }
    /// Whether the matrix comes in more than one panel.
    #[inline(always)]
    fn in_panels(self) -> bool {
        false
    }
}

/// A [`Place`] that may be written.
pub trait PlaceMut: Place {
    /// Address of element `(i, j)`, see [`Place::at`].
    fn at_mut(self, i: usize, j: usize) -> *mut f32;
}

/// Start address of a view, read-only or writable.
pub trait Address: Copy {
    fn read_only(self) -> *const f32;
}

impl Address for *const f32 {
    #[inline(always)]
    fn read_only(self) -> *const f32 {
        self
    }
}

impl Address for *mut f32 {
    #[inline(always)]
    fn read_only(self) -> *const f32 {
        self.cast_const()
    }
}

impl<P: Address> Place for PanelView<P> {
    #[inline(always)]
    fn at(self, i: usize, j: usize) -> *const f32 {
        self.ptr.read_only().wrapping_add(self.offset(i, j))
    }
    #[inline(always)]
    fn stride(self) -> usize {
        self.stride
    }
    #[inline(always)]
    fn together(self, j: usize, n: usize) -> bool {
        self.one_panel(j, n)
    }
    #[inline(always)]
    fn in_panels(self) -> bool {
        self.is_panels()
    }
}

impl PlaceMut for PanelsMut {
    #[inline(always)]
    fn at_mut(self, i: usize, j: usize) -> *mut f32 {
        self.ptr.wrapping_add(self.offset(i, j))
    }
}

impl Place for Mat {
    #[inline(always)]
    fn at(self, i: usize, j: usize) -> *const f32 {
        Mat::at(self, i, j)
    }
    #[inline(always)]
    fn stride(self) -> usize {
        self.stride
    }
}

impl Place for MatMut {
    #[inline(always)]
    fn at(self, i: usize, j: usize) -> *const f32 {
        MatMut::at(self, i, j).cast_const()
    }
    #[inline(always)]
    fn stride(self) -> usize {
        self.stride
    }
}

impl PlaceMut for MatMut {
    #[inline(always)]
    fn at_mut(self, i: usize, j: usize) -> *mut f32 {
        MatMut::at(self, i, j)
    }
}

impl From<Mat> for Panels {
    fn from(mat: Mat) -> Panels {
        PanelView {
            ptr: mat.ptr,
            rows: mat.rows,
            cols: mat.cols,
            stride: mat.stride,
            step: Panels::WIDTH,
        }
    }
}

impl From<MatMut> for PanelsMut {
    fn from(mat: MatMut) -> PanelsMut {
        PanelView {
            ptr: mat.ptr,
            rows: mat.rows,
            cols: mat.cols,
            stride: mat.stride,
            step: Panels::WIDTH,
        }
    }
}

impl From<Grad> for Grad<PanelsMut> {
    fn from(Grad { to, accumulate }: Grad) -> Grad<PanelsMut> {
        Grad {
            to: to.into(),
            accumulate,
        }
    }
}

#[cfg(test)]
mod tests;
