//! Embedding rows stored as f32, FP16 or BF16. Kernels are written once over [`Element`], the storage of one number;
//! arithmetic is always f32.

use crate::arena::Pod;
use crate::half::{
    brain_to_float, float_to_brain, float_to_brain_randomly, float_to_half, float_to_half_randomly, half_to_float,
};
use crate::mat::{Mat, MatMut};
use crate::simd::{LANES, Simd};

/// How one number of a row is stored.
///
/// # Safety
/// The methods' pointers must be valid for the lanes they name; [`Simd`]'s rule on target features holds too.
#[allow(clippy::missing_safety_doc)]
pub unsafe trait Element: Pod {
    unsafe fn load<V: Simd>(p: *const Self) -> V;
    /// Lanes `n..` are zero.
    unsafe fn load_part<V: Simd>(p: *const Self, n: usize) -> V;
    unsafe fn store<V: Simd>(v: V, p: *mut Self);
    /// Writes the first `n` lanes only.
    unsafe fn store_part<V: Simd>(v: V, p: *mut Self, n: usize);
    fn widen(self) -> f32;
    fn narrow(x: f32) -> Self;
    /// Stochastic, unbiased rounding by a random word; a plain store for f32.
    fn narrow_randomly(x: f32, word: u32) -> Self;
}

// SAFETY: plain loads and stores of `LANES` or `n` elements.
unsafe impl Element for f32 {
    #[inline(always)]
    unsafe fn load<V: Simd>(p: *const f32) -> V {
        // SAFETY: by this function's contract.
        unsafe { V::load(p) }
    }
    #[inline(always)]
    unsafe fn load_part<V: Simd>(p: *const f32, n: usize) -> V {
        // SAFETY: by this function's contract.
        unsafe { V::load_part(p, n) }
    }
    #[inline(always)]
    unsafe fn store<V: Simd>(v: V, p: *mut f32) {
        // SAFETY: by this function's contract.
        unsafe { v.store(p) }
    }
    #[inline(always)]
    unsafe fn store_part<V: Simd>(v: V, p: *mut f32, n: usize) {
        // SAFETY: by this function's contract.
        unsafe { v.store_part(p, n) }
    }
    fn widen(self) -> f32 {
        self
    }
    fn narrow(x: f32) -> f32 {
        x
    }
    fn narrow_randomly(x: f32, _word: u32) -> f32 {
        x
    }
}

// SAFETY: as above; tails go through a buffer of whole lanes.
unsafe impl Element for u16 {
    #[inline(always)]
    unsafe fn load<V: Simd>(p: *const u16) -> V {
        // SAFETY: by this function's contract.
        unsafe { V::load_half(p) }
    }
    #[inline(always)]
    unsafe fn load_part<V: Simd>(p: *const u16, n: usize) -> V {
        // SAFETY: by this function's contract.
        unsafe {
            let mut lanes = [0u16; LANES];
            for (i, lane) in lanes.iter_mut().enumerate().take(n) {
                *lane = *p.add(i);
            }
            V::load_half(lanes.as_ptr())
        }
    }
    #[inline(always)]
    unsafe fn store<V: Simd>(v: V, p: *mut u16) {
        // SAFETY: by this function's contract.
        unsafe { v.store_half(p) }
    }
    #[inline(always)]
    unsafe fn store_part<V: Simd>(v: V, p: *mut u16, n: usize) {
        // SAFETY: by this function's contract.
        unsafe {
            let mut lanes = [0u16; LANES];
            v.store_half(lanes.as_mut_ptr());
            for (i, lane) in lanes.iter().enumerate().take(n) {
                *p.add(i) = *lane;
            }
        }
    }
    fn widen(self) -> f32 {
        half_to_float(self)
    }
    fn narrow(x: f32) -> u16 {
        float_to_half(x)
    }
    fn narrow_randomly(x: f32, word: u32) -> u16 {
        float_to_half_randomly(x, word)
    }
}

/// The upper half of an f32.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bf16(pub u16);

// SAFETY: a plain number.
unsafe impl Pod for Bf16 {}

// SAFETY: plain loads and stores of `LANES` or `n` elements; conversions go through buffers of whole lanes.
unsafe impl Element for Bf16 {
    #[inline(always)]
    unsafe fn load<V: Simd>(p: *const Bf16) -> V {
        // SAFETY: by this function's contract.
        unsafe { Bf16::load_part(p, LANES) }
    }
    #[inline(always)]
    unsafe fn load_part<V: Simd>(p: *const Bf16, n: usize) -> V {
        let mut lanes = [0f32; LANES];
        // SAFETY: by this function's contract.
        unsafe {
            for (i, lane) in lanes.iter_mut().enumerate().take(n) {
                *lane = brain_to_float((*p.add(i)).0);
            }
            V::load(lanes.as_ptr())
        }
    }
    #[inline(always)]
    unsafe fn store<V: Simd>(v: V, p: *mut Bf16) {
        // SAFETY: by this function's contract.
        unsafe { Bf16::store_part(v, p, LANES) }
    }
    #[inline(always)]
    unsafe fn store_part<V: Simd>(v: V, p: *mut Bf16, n: usize) {
        let mut lanes = [0f32; LANES];
        // SAFETY: by this function's contract.
        unsafe {
            v.store(lanes.as_mut_ptr());
            for (i, lane) in lanes.iter().enumerate().take(n) {
                *p.add(i) = Bf16::narrow(*lane);
            }
        }
    }
    fn widen(self) -> f32 {
        brain_to_float(self.0)
    }
    fn narrow(x: f32) -> Bf16 {
        Bf16(float_to_brain(x))
    }
    fn narrow_randomly(x: f32, word: u32) -> Bf16 {
        Bf16(float_to_brain_randomly(x, word))
    }
}

/// A table's rows, read-only.
#[derive(Clone, Copy, Debug)]
pub enum Rows {
    F32(Mat),
    F16(Mat<u16>),
    Bf16(Mat<Bf16>),
}

/// A table's rows, writable.
#[derive(Clone, Copy, Debug)]
pub enum RowsMut {
    F32(MatMut),
    F16(MatMut<u16>),
    Bf16(MatMut<Bf16>),
}

impl Rows {
    pub fn rows(self) -> usize {
        match self {
            Rows::F32(table) => table.rows,
            Rows::F16(table) => table.rows,
            Rows::Bf16(table) => table.rows,
        }
    }
    pub fn cols(self) -> usize {
        match self {
            Rows::F32(table) => table.cols,
            Rows::F16(table) => table.cols,
            Rows::Bf16(table) => table.cols,
        }
    }
    /// Rows `[from, from + rows)`.
    pub fn row_range(self, from: usize, rows: usize) -> Rows {
        match self {
            Rows::F32(table) => Rows::F32(table.row_range(from, rows)),
            Rows::F16(table) => Rows::F16(table.row_range(from, rows)),
            Rows::Bf16(table) => Rows::Bf16(table.row_range(from, rows)),
        }
    }
    pub fn bytes_per_element(self) -> usize {
        match self {
            Rows::F32(_) => 4,
            Rows::F16(_) | Rows::Bf16(_) => 2,
        }
    }
}

impl RowsMut {
    pub fn as_ref(self) -> Rows {
        match self {
            RowsMut::F32(table) => Rows::F32(table.as_ref()),
            RowsMut::F16(table) => Rows::F16(table.as_ref()),
            RowsMut::Bf16(table) => Rows::Bf16(table.as_ref()),
        }
    }
}

/// `$body` with `$table` bound to the matrix of whichever storage `$rows` has.
#[macro_export]
macro_rules! with_rows {
    ($kind:ident, $rows:expr, $table:ident => $body:expr) => {
        match $rows {
            $crate::rows::$kind::F32($table) => $body,
            $crate::rows::$kind::F16($table) => $body,
            $crate::rows::$kind::Bf16($table) => $body,
        }
    };
}

/// Row of `cols` numbers starting at `p`, vector `k` of it; the last one may be short.
///
/// # Safety
/// As [`Element::load_part`].
#[inline(always)]
pub unsafe fn load_vector<V: Simd, E: Element>(p: *const E, k: usize, cols: usize) -> V {
    // SAFETY: by this function's contract.
    unsafe {
        let at = k * LANES;
        if at + LANES <= cols {
            E::load::<V>(p.add(at))
        } else {
            E::load_part::<V>(p.add(at), cols - at)
        }
    }
}

/// Counterpart of [`load_vector`].
///
/// # Safety
/// As [`Element::store_part`].
#[inline(always)]
pub unsafe fn store_vector<V: Simd, E: Element>(v: V, p: *mut E, k: usize, cols: usize) {
    // SAFETY: by this function's contract.
    unsafe {
        let at = k * LANES;
        if at + LANES <= cols {
            E::store(v, p.add(at));
        } else {
            E::store_part(v, p.add(at), cols - at);
        }
    }
}
