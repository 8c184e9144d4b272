//! Row-major matrix views: a pointer, a shape and a row stride. A column range of a wider matrix is a view too, so
//! kernels read `Q` out of `[U|V|Q|K]` and write its gradient back without a copy.
//!
//! Views are `Copy` and `Send` so that the tiles of one matrix can be worked on by several threads; the kernel that
//! splits the work promises that no two tasks write the same element.

use std::ops::Range;

/// Read-only view of `rows` x `cols` elements with a row stride of `stride` elements.
#[derive(Clone, Copy, Debug)]
pub struct Mat<T = f32> {
    pub ptr: *const T,
    pub rows: usize,
    pub cols: usize,
    pub stride: usize,
}

/// Writable view, see [`Mat`].
#[derive(Clone, Copy, Debug)]
pub struct MatMut<T = f32> {
    pub ptr: *mut T,
    pub rows: usize,
    pub cols: usize,
    pub stride: usize,
}

// SAFETY: a view is an address and a shape; the code that dereferences it upholds aliasing (see the module header).
unsafe impl<T: Sync> Send for Mat<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Mat<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for MatMut<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for MatMut<T> {}

fn check_size(elements: usize, rows: usize, cols: usize) {
    assert!(
        elements >= rows * cols,
        "{elements} elements for a {rows} x {cols} matrix"
    );
}

fn check_range(what: &str, range: Range<usize>, of: usize) {
    assert!(range.end <= of, "{what} {range:?} of {of}");
}

impl<T: Copy> Mat<T> {
    pub fn new(data: &[T], rows: usize, cols: usize) -> Self {
        check_size(data.len(), rows, cols);
        Mat {
            ptr: data.as_ptr(),
            rows,
            cols,
            stride: cols,
        }
    }

    /// Rows `[from, from + rows)` of this view.
    pub fn row_range(self, from: usize, rows: usize) -> Self {
        check_range("rows", from..from + rows, self.rows);
        Mat {
            ptr: self.ptr.wrapping_add(from * self.stride),
            rows,
            ..self
        }
    }

    /// Columns `[from, from + cols)` of this view.
    pub fn columns(self, from: usize, cols: usize) -> Self {
        check_range("columns", from..from + cols, self.cols);
        Mat {
            ptr: self.ptr.wrapping_add(from),
            cols,
            ..self
        }
    }

    /// Address of element `(i, j)`.
    #[inline(always)]
    pub fn at(self, i: usize, j: usize) -> *const T {
        self.ptr.wrapping_add(i * self.stride + j)
    }

    /// # Safety
    /// `i < rows`, the memory is alive and nobody writes this row meanwhile.
    #[inline(always)]
    pub unsafe fn row<'a>(self, i: usize) -> &'a [T] {
        debug_assert!(i < self.rows);
        // SAFETY: by this function's contract.
        unsafe { std::slice::from_raw_parts(self.ptr.add(i * self.stride), self.cols) }
    }
}

impl<T: Copy> MatMut<T> {
    pub fn new(data: &mut [T], rows: usize, cols: usize) -> Self {
        check_size(data.len(), rows, cols);
        MatMut {
            ptr: data.as_mut_ptr(),
            rows,
            cols,
            stride: cols,
        }
    }

    /// Rows `[from, from + rows)` of this view.
    pub fn row_range(self, from: usize, rows: usize) -> Self {
        check_range("rows", from..from + rows, self.rows);
        MatMut {
            ptr: self.ptr.wrapping_add(from * self.stride),
            rows,
            ..self
        }
    }

    /// Columns `[from, from + cols)` of this view.
    pub fn columns(self, from: usize, cols: usize) -> Self {
        check_range("columns", from..from + cols, self.cols);
        MatMut {
            ptr: self.ptr.wrapping_add(from),
            cols,
            ..self
        }
    }

    /// The same memory, read-only.
    pub fn as_ref(self) -> Mat<T> {
        Mat {
            ptr: self.ptr,
            rows: self.rows,
            cols: self.cols,
            stride: self.stride,
        }
    }

    /// Address of element `(i, j)`.
    #[inline(always)]
    pub fn at(self, i: usize, j: usize) -> *mut T {
        self.ptr.wrapping_add(i * self.stride + j)
    }

    /// # Safety
    /// `i < rows`, the memory is alive and this task is the only one that touches the row.
    #[inline(always)]
    pub unsafe fn row<'a>(self, i: usize) -> &'a mut [T] {
        debug_assert!(i < self.rows);
        // SAFETY: by this function's contract.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.add(i * self.stride), self.cols) }
    }
}

/// A mutable slice that several tasks write in disjoint parts.
#[derive(Clone, Copy)]
pub struct Disjoint<'a, T> {
    ptr: *mut T,
    len: usize,
    life: std::marker::PhantomData<&'a mut [T]>,
}

// SAFETY: see `range`: its callers take disjoint parts.
unsafe impl<T: Send> Send for Disjoint<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Disjoint<'_, T> {}

impl<'a, T> Disjoint<'a, T> {
    pub fn new(data: &'a mut [T]) -> Self {
        Disjoint {
            ptr: data.as_mut_ptr(),
            len: data.len(),
            life: std::marker::PhantomData,
        }
    }

    /// # Safety
    /// Ranges given to different tasks do not overlap.
    #[inline(always)]
    pub unsafe fn range(&self, from: usize, len: usize) -> &'a mut [T] {
        assert!(from + len <= self.len);
        // SAFETY: by this function's contract.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.add(from), len) }
    }
}

/// Destination of a gradient, and whether to accumulate or overwrite.
#[derive(Clone, Copy, Debug)]
pub struct Grad<M = MatMut> {
    pub to: M,
    pub accumulate: bool,
}

impl<M> Grad<M> {
    pub fn overwrite(to: M) -> Grad<M> {
        Grad { to, accumulate: false }
    }
    pub fn accumulate(to: M) -> Grad<M> {
        Grad { to, accumulate: true }
    }
}
