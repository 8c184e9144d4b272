//! A line in one register of AVX-512.

use super::elements::ROOT_HALF;
use super::x86::Avx512;
use super::{Elements, LINE};
use std::arch::x86_64::*;

/// One 512-bit register.
#[derive(Clone, Copy)]
pub struct Zmm(pub __m512);

impl Zmm {
    /// # Safety
    /// This CPU has AVX-512 F and DQ.
    #[inline(always)]
    pub unsafe fn of_halves(low: Avx512, high: Avx512) -> Zmm {
        // SAFETY: by this function's contract.
        unsafe { Zmm(_mm512_insertf32x8::<1>(_mm512_castps256_ps512(low.0), high.0)) }
    }

    /// # Safety
    /// As [`Zmm::of_halves`].
    #[inline(always)]
    pub unsafe fn halves(self) -> [Avx512; 2] {
        // SAFETY: by this function's contract.
        unsafe {
            [
                Avx512::of(_mm512_castps512_ps256(self.0)),
                Avx512::of(_mm512_extractf32x8_ps::<1>(self.0)),
            ]
        }
    }
}

/// The first `n` elements.
fn mask(n: usize) -> __mmask16 {
    ((1u32 << n.min(LINE)) - 1) as __mmask16
}

// SAFETY: the trait's contract: only below an entry with the target features, with valid pointers.
#[expect(
    clippy::undocumented_unsafe_blocks,
    reason = "one argument for all methods, stated above"
)]
unsafe impl Elements for Zmm {
    const COUNT: usize = LINE;
    type Whole = __m512i;
    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { Zmm(_mm512_setzero_ps()) }
    }
    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        unsafe { Zmm(_mm512_set1_ps(x)) }
    }
    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        unsafe { Zmm(_mm512_loadu_ps(p)) }
    }
    #[inline(always)]
    unsafe fn load_part(p: *const f32, n: usize) -> Self {
        unsafe { Zmm(_mm512_maskz_loadu_ps(mask(n), p)) }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        unsafe { _mm512_storeu_ps(p, self.0) }
    }
    #[inline(always)]
    unsafe fn store_part(self, p: *mut f32, n: usize) {
        unsafe { _mm512_mask_storeu_ps(p, mask(n), self.0) }
    }
    #[inline(always)]
    unsafe fn add(self, o: Self) -> Self {
        unsafe { Zmm(_mm512_add_ps(self.0, o.0)) }
    }
    #[inline(always)]
    unsafe fn sub(self, o: Self) -> Self {
        unsafe { Zmm(_mm512_sub_ps(self.0, o.0)) }
    }
    #[inline(always)]
    unsafe fn mul(self, o: Self) -> Self {
        unsafe { Zmm(_mm512_mul_ps(self.0, o.0)) }
    }
    #[inline(always)]
    unsafe fn div(self, o: Self) -> Self {
        unsafe { Zmm(_mm512_div_ps(self.0, o.0)) }
    }
    #[inline(always)]
    unsafe fn max(self, o: Self) -> Self {
        unsafe { Zmm(_mm512_max_ps(self.0, o.0)) }
    }
    #[inline(always)]
    unsafe fn min(self, o: Self) -> Self {
        unsafe { Zmm(_mm512_min_ps(self.0, o.0)) }
    }
    #[inline(always)]
    unsafe fn fma(self, b: Self, c: Self) -> Self {
        unsafe { Zmm(_mm512_fmadd_ps(self.0, b.0, c.0)) }
    }
    #[inline(always)]
    unsafe fn where_positive(self, x: Self) -> Self {
        unsafe {
            let positive = _mm512_cmp_ps_mask::<_CMP_GT_OQ>(x.0, _mm512_setzero_ps());
            Zmm(_mm512_maskz_mov_ps(positive, self.0))
        }
    }
    #[inline(always)]
    unsafe fn nearest(self) -> __m512i {
        unsafe { _mm512_cvtps_epi32(self.0) }
    }
    #[inline(always)]
    unsafe fn from_whole(n: __m512i) -> Self {
        unsafe { Zmm(_mm512_cvtepi32_ps(n)) }
    }
    #[inline(always)]
    unsafe fn times_two_to(self, n: __m512i) -> Self {
        unsafe {
            let scaled = _mm512_add_epi32(_mm512_castps_si512(self.0), _mm512_slli_epi32::<23>(n));
            Zmm(_mm512_castsi512_ps(scaled))
        }
    }
    #[inline(always)]
    unsafe fn split(self) -> (Self, __m512i) {
        unsafe {
            let bits = _mm512_castps_si512(self.0);
            let n = _mm512_srai_epi32::<23>(_mm512_sub_epi32(bits, _mm512_set1_epi32(ROOT_HALF)));
            let m = _mm512_sub_epi32(bits, _mm512_slli_epi32::<23>(n));
            (Zmm(_mm512_castsi512_ps(m)), n)
        }
    }
}
