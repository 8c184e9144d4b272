//! A line in two vectors.

use super::{Elements, LANES, LINE, Simd};

// SAFETY: the vectors' own contract.
#[expect(
    clippy::undocumented_unsafe_blocks,
    reason = "one argument for all methods, stated above"
)]
unsafe impl<V: Simd> Elements for [V; 2] {
    const COUNT: usize = LINE;
    type Whole = [V::Whole; 2];
    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { [V::zero(); 2] }
    }
    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        unsafe { [V::splat(x); 2] }
    }
    #[inline(always)]
    unsafe fn constant(x: f32) -> Self {
        unsafe { [V::constant(x); 2] }
    }
    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        unsafe { [V::load(p), V::load(p.add(LANES))] }
    }
    #[inline(always)]
    unsafe fn load_part(p: *const f32, n: usize) -> Self {
        unsafe {
            [
                V::load_upto(p, n),
                V::load_part(p.wrapping_add(LANES), n.saturating_sub(LANES)),
            ]
        }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        unsafe {
            self[0].store(p);
            self[1].store(p.add(LANES));
        }
    }
    #[inline(always)]
    unsafe fn store_part(self, p: *mut f32, n: usize) {
        unsafe {
            self[0].store_upto(p, n);
            self[1].store_part(p.wrapping_add(LANES), n.saturating_sub(LANES));
        }
    }
    #[inline(always)]
    unsafe fn add(self, o: Self) -> Self {
        unsafe { [self[0].add(o[0]), self[1].add(o[1])] }
    }
    #[inline(always)]
    unsafe fn sub(self, o: Self) -> Self {
        unsafe { [self[0].sub(o[0]), self[1].sub(o[1])] }
    }
    #[inline(always)]
    unsafe fn mul(self, o: Self) -> Self {
        unsafe { [self[0].mul(o[0]), self[1].mul(o[1])] }
    }
    #[inline(always)]
    unsafe fn div(self, o: Self) -> Self {
        unsafe { [self[0].div(o[0]), self[1].div(o[1])] }
    }
    #[inline(always)]
    unsafe fn max(self, o: Self) -> Self {
        unsafe { [self[0].max(o[0]), self[1].max(o[1])] }
    }
    #[inline(always)]
    unsafe fn min(self, o: Self) -> Self {
        unsafe { [self[0].min(o[0]), self[1].min(o[1])] }
    }
    #[inline(always)]
    unsafe fn fma(self, b: Self, c: Self) -> Self {
        unsafe { [self[0].fma(b[0], c[0]), self[1].fma(b[1], c[1])] }
    }
    #[inline(always)]
    unsafe fn where_positive(self, x: Self) -> Self {
        unsafe { [self[0].where_positive(x[0]), self[1].where_positive(x[1])] }
    }
    #[inline(always)]
    unsafe fn nearest(self) -> Self::Whole {
        unsafe { [self[0].nearest(), self[1].nearest()] }
    }
    #[inline(always)]
    unsafe fn from_whole(n: Self::Whole) -> Self {
        unsafe { [V::from_whole(n[0]), V::from_whole(n[1])] }
    }
    #[inline(always)]
    unsafe fn times_two_to(self, n: Self::Whole) -> Self {
        unsafe { [self[0].times_two_to(n[0]), self[1].times_two_to(n[1])] }
    }
    #[inline(always)]
    unsafe fn split(self) -> (Self, Self::Whole) {
        unsafe {
            let ((low, n), (high, m)) = (self[0].split(), self[1].split());
            ([low, high], [n, m])
        }
    }
}
