//! Packs a block of rows of one head into the two forms that the tile reads, and writes results back. A view in panels already
//! has one of these forms. Packed memory is dense, so power-of-two strides do not thrash the L1 cache while the block is used.

use super::plan::BLOCK;
use crate::panels::{Panels, PanelsMut, Place, PlaceMut};
use crate::simd::tile::NR;
use crate::simd::{LANES, LINE, Simd};

/// A block in column form, `[width/16][rows][16]`.
#[derive(Clone, Copy)]
pub struct ColumnForm {
    ptr: *const f32,
    /// Stride between panels, in floats.
    pub step: usize,
}

impl ColumnForm {
    /// Packed at `ptr`, see [`Part::pack_columns`].
    pub fn packed(ptr: *const f32) -> ColumnForm {
        ColumnForm { ptr, step: BLOCK * NR }
    }

    /// Of this many rows at `ptr`, panels directly after each other.
    pub fn of_rows(ptr: *const f32, rows: usize) -> ColumnForm {
        ColumnForm { ptr, step: rows * NR }
    }

    /// The same without its first rows.
    #[inline(always)]
    pub fn skip_rows(self, rows: usize) -> ColumnForm {
        ColumnForm {
            ptr: self.at(rows, 0),
            ..self
        }
    }

    /// The same from column `col` on, a multiple of 16.
    #[inline(always)]
    pub fn skip_columns(self, col: usize) -> ColumnForm {
        ColumnForm {
            ptr: self.at(0, col),
            ..self
        }
    }

    /// Sixteen columns from `col`, a multiple of 16, of row `row`.
    #[inline(always)]
    pub fn at(self, row: usize, col: usize) -> *const f32 {
        self.ptr.wrapping_add(col / NR * self.step + row * NR)
    }
}

/// Prefetch distance in rows: with strides that are powers of two, eight rows fill a set of the L1 cache.
const AHEAD: usize = 12;

/// Rows `[row, row + rows)` and columns `[col, col + width)` of a view; if it is in panels, the columns are whole ones.
#[derive(Clone, Copy)]
pub struct Part<P = Panels> {
    pub of: P,
    pub row: usize,
    pub rows: usize,
    pub col: usize,
    pub width: usize,
}

impl<P> Part<P> {
    /// The same rows and columns of another view.
    #[inline(always)]
    pub fn within<Q>(self, of: Q) -> Part<Q> {
        Part {
            of,
            row: self.row,
            rows: self.rows,
            col: self.col,
            width: self.width,
        }
    }
}

impl Part {
    #[inline(always)]
    fn first(&self) -> *const f32 {
        self.of.at(self.row, self.col)
    }

    /// The column form, if the part is stored in it; rows after the last one are not zero then.
    #[inline(always)]
    pub fn as_columns(&self) -> Option<ColumnForm> {
        self.of.in_panels().then(|| ColumnForm {
            ptr: self.first(),
            step: self.of.step,
        })
    }

    /// The column form: in place if the part is stored in it, else packed at `to` with zero rows up to `padded`.
    ///
    /// # Safety
    /// As [`Part::pack_columns`].
    #[inline(always)]
    pub unsafe fn columns<V: Simd>(self, padded: usize, to: *mut f32) -> ColumnForm {
        match self.as_columns() {
            Some(columns) => columns,
            None => {
                // SAFETY: by this function's contract.
                unsafe { self.pack_columns::<V>(padded, 1.0, to) };
                ColumnForm::packed(to)
            }
        }
    }

    /// Packs the column form `[width/16][BLOCK][16]`, every element times `scale`; rows up to `padded` are zero.
    ///
    /// # Safety
    /// This CPU has `V`'s instructions; the part lies within its view, which is alive; `rows <= padded <= BLOCK`, and `to` has
    /// room for `BLOCK` rows of the width rounded up to 16.
    #[inline(always)]
    pub unsafe fn pack_columns<V: Simd>(self, padded: usize, scale: f32, to: *mut f32) {
        // SAFETY: by this function's contract.
        unsafe {
            let (first, scale) = (self.first(), V::splat(scale));
            let Panels { stride, step, .. } = self.of;
            for row in 0..self.rows {
                for col in (0..self.width).step_by(NR) {
                    let (from, left) = (first.add(row * stride + col / NR * step), self.width - col);
                    V::prefetch(from.wrapping_add(AHEAD * stride));
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
    ///
    /// # Safety
    /// This CPU has `V`'s instructions; the part lies within its view, which is alive; `to` has room for the form.
    #[inline(always)]
    pub unsafe fn transposed<V: Simd>(self, padded: usize, to: *mut f32) {
        // SAFETY: by this function's contract.
        unsafe {
            let (first, deep) = (self.first(), self.width.next_multiple_of(LANES));
            let Panels { stride, step, .. } = self.of;
            for row in (0..padded).step_by(LANES) {
                for col in (0..self.width).step_by(LANES) {
                    let from = first.wrapping_add(row * stride + col / NR * step + col % NR);
                    let mut rows = [V::zero(); LANES];
                    if row + LANES <= self.rows && col + LANES <= self.width {
                        for (r, lanes) in rows.iter_mut().enumerate() {
                            *lanes = V::load(from.add(r * stride));
                            if col % LINE == 0 {
                                V::prefetch(from.wrapping_add((AHEAD + r) * stride));
                            }
                        }
                    } else {
                        for (r, lanes) in rows.iter_mut().enumerate().take(self.rows.saturating_sub(row)) {
                            *lanes = V::load_upto(from.add(r * stride), self.width - col);
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
}

impl Part<PanelsMut> {
    /// # Safety
    /// The part lies within its view, which is alive, and nobody else touches it.
    #[inline(always)]
    pub unsafe fn zero(self) {
        for row in 0..self.rows {
            for col in 0..self.width {
                // SAFETY: by this function's contract.
                unsafe { *self.of.at_mut(self.row + row, self.col + col) = 0.0 };
            }
        }
    }

    /// Writes (or adds) `scale` times the rows at `from`, `stride` floats apart.
    ///
    /// # Safety
    /// This CPU has `V`'s instructions; the part lies within its view, which is alive and which nobody else touches here; rows
    /// at `from` can be read up to the width rounded up to 8.
    #[inline(always)]
    pub unsafe fn receive<V: Simd>(self, from: *const f32, stride: usize, scale: f32, add: bool) {
        // SAFETY: by this function's contract.
        unsafe {
            let (first, scale) = (self.of.at_mut(self.row, self.col), V::splat(scale));
            for row in 0..self.rows {
                for line in (0..self.width).step_by(LINE) {
                    let to = first.add(row * self.of.stride + line / LINE * self.of.step);
                    V::prefetch(to.wrapping_add(AHEAD * self.of.stride));
                    for col in (line..self.width.min(line + LINE)).step_by(LANES) {
                        let (to, left) = (to.add(col - line), self.width - col);
                        let x = V::load(from.add(row * stride + col)).mul(scale);
                        let x = if add { V::load_upto(to, left).add(x) } else { x };
                        x.store_upto(to, left);
                    }
                }
            }
        }
    }
}
