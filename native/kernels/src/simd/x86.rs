//! The lanes on x86-64 with AVX2, FMA and F16C. With AVX-512 they stay the same, so that sums over lanes have the same order; only
//! lines, whose elements are independent, are then one register.

use super::elements::ROOT_HALF;
use super::x86_tile::{Narrow, Wide};
use super::{Elements, LANES, Simd, tile};
use crate::isa::Isa;
use std::arch::x86_64::*;
use std::marker::PhantomData;

/// One 256-bit register, in code for the instruction set `S`.
pub struct Ymm<S>(pub __m256, PhantomData<S>);

/// Eight lanes of AVX2.
pub type Avx2 = Ymm<Narrow>;
/// Eight lanes on a CPU with AVX-512.
pub type Avx512 = Ymm<Wide>;

impl<S> Clone for Ymm<S> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Ymm<S> {}

/// What differs between the two instruction sets.
///
/// # Safety
/// As [`Simd`].
#[expect(clippy::missing_safety_doc, reason = "one contract for all methods, stated above")]
pub unsafe trait Set: Sized + Send + Sync + 'static {
    const ISA: Isa;
    type Line: Elements;
    unsafe fn line(low: Ymm<Self>, high: Ymm<Self>) -> Self::Line;
    unsafe fn halves(line: Self::Line) -> [Ymm<Self>; 2];
    /// See [`Simd::unrolled_steps`].
    unsafe fn unrolled_steps<const ROW: usize, const STEP: usize, const W: usize>(
        sums: &mut [tile::Sums<Self::Line>; W],
        counts: [usize; 2],
        panel: usize,
        a: *const f32,
        b: [*const f32; W],
    );
}

impl<S> Ymm<S> {
    #[inline(always)]
    pub fn of(lanes: __m256) -> Self {
        Ymm(lanes, PhantomData)
    }
}

static MASKS: [i32; 2 * LANES] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

/// # Safety
/// This CPU has AVX2; `n <= 8`.
#[inline(always)]
unsafe fn mask(n: usize) -> __m256i {
    // SAFETY: by this function's contract.
    unsafe { _mm256_loadu_si256(MASKS.as_ptr().add(LANES - n.min(LANES)).cast()) }
}

/// `|now - p[i]|` of four integers. A u64 becomes an f64 by placing its halves in the mantissas of 2^84 and 2^52, which
/// are then subtracted.
///
/// # Safety
/// This CPU has AVX2; `p` holds four integers.
#[inline(always)]
unsafe fn four_gaps(now: i64, p: *const i64) -> __m128 {
    // SAFETY: by this function's contract.
    unsafe {
        let gap = _mm256_sub_epi64(_mm256_set1_epi64x(now), _mm256_loadu_si256(p.cast()));
        let sign = _mm256_cmpgt_epi64(_mm256_setzero_si256(), gap);
        let size = _mm256_sub_epi64(_mm256_xor_si256(gap, sign), sign);
        let high = _mm256_or_si256(_mm256_srli_epi64::<32>(size), _mm256_set1_epi64x(0x4530_0000_0000_0000));
        let low = _mm256_blend_epi32::<0b1010_1010>(size, _mm256_set1_epi64x(0x4330_0000_0000_0000));
        let both = _mm256_set1_pd(f64::from_bits(0x4530_0000_0010_0000));
        let high = _mm256_sub_pd(_mm256_castsi256_pd(high), both);
        _mm256_cvtpd_ps(_mm256_add_pd(high, _mm256_castsi256_pd(low)))
    }
}

// SAFETY: the trait's contract: only below an entry with the target features, with valid pointers.
#[expect(
    clippy::undocumented_unsafe_blocks,
    reason = "one argument for all methods, stated above"
)]
unsafe impl<S: Set> Elements for Ymm<S> {
    const COUNT: usize = LANES;
    type Whole = __m256i;
    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { Self::of(_mm256_setzero_ps()) }
    }
    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        unsafe { Self::of(_mm256_set1_ps(x)) }
    }
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn constant(x: f32) -> Self {
        let mut lanes = _mm256_set1_ps(x);
        // SAFETY: no instruction at all, but the compiler cannot know the value.
        unsafe { std::arch::asm!("/* {0} */", inout(ymm_reg) lanes, options(pure, nomem, nostack, preserves_flags)) };
        Self::of(lanes)
    }
    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        unsafe { Self::of(_mm256_loadu_ps(p)) }
    }
    #[inline(always)]
    unsafe fn load_part(p: *const f32, n: usize) -> Self {
        unsafe { Self::of(_mm256_maskload_ps(p, mask(n))) }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        unsafe { _mm256_storeu_ps(p, self.0) }
    }
    #[inline(always)]
    unsafe fn store_part(self, p: *mut f32, n: usize) {
        unsafe { _mm256_maskstore_ps(p, mask(n), self.0) }
    }
    #[inline(always)]
    unsafe fn add(self, o: Self) -> Self {
        unsafe { Self::of(_mm256_add_ps(self.0, o.0)) }
    }
    #[inline(always)]
    unsafe fn sub(self, o: Self) -> Self {
        unsafe { Self::of(_mm256_sub_ps(self.0, o.0)) }
    }
    #[inline(always)]
    unsafe fn mul(self, o: Self) -> Self {
        unsafe { Self::of(_mm256_mul_ps(self.0, o.0)) }
    }
    #[inline(always)]
    unsafe fn div(self, o: Self) -> Self {
        unsafe { Self::of(_mm256_div_ps(self.0, o.0)) }
    }
    #[inline(always)]
    unsafe fn max(self, o: Self) -> Self {
        unsafe { Self::of(_mm256_max_ps(self.0, o.0)) }
    }
    #[inline(always)]
    unsafe fn min(self, o: Self) -> Self {
        unsafe { Self::of(_mm256_min_ps(self.0, o.0)) }
    }
    #[inline(always)]
    unsafe fn fma(self, b: Self, c: Self) -> Self {
        unsafe { Self::of(_mm256_fmadd_ps(self.0, b.0, c.0)) }
    }
    #[inline(always)]
    unsafe fn where_positive(self, x: Self) -> Self {
        unsafe {
            let positive = _mm256_cmp_ps::<_CMP_GT_OQ>(x.0, _mm256_setzero_ps());
            Self::of(_mm256_and_ps(positive, self.0))
        }
    }
    #[inline(always)]
    unsafe fn nearest(self) -> __m256i {
        unsafe { _mm256_cvtps_epi32(self.0) }
    }
    #[inline(always)]
    unsafe fn from_whole(n: __m256i) -> Self {
        unsafe { Self::of(_mm256_cvtepi32_ps(n)) }
    }
    #[inline(always)]
    unsafe fn times_two_to(self, n: __m256i) -> Self {
        unsafe {
            let scaled = _mm256_add_epi32(_mm256_castps_si256(self.0), _mm256_slli_epi32::<23>(n));
            Self::of(_mm256_castsi256_ps(scaled))
        }
    }
    #[inline(always)]
    unsafe fn split(self) -> (Self, __m256i) {
        unsafe {
            let bits = _mm256_castps_si256(self.0);
            let n = _mm256_srai_epi32::<23>(_mm256_sub_epi32(bits, _mm256_set1_epi32(ROOT_HALF)));
            let m = _mm256_sub_epi32(bits, _mm256_slli_epi32::<23>(n));
            (Self::of(_mm256_castsi256_ps(m)), n)
        }
    }
}

// SAFETY: as above.
#[expect(
    clippy::undocumented_unsafe_blocks,
    reason = "one argument for all methods, stated above"
)]
unsafe impl<S: Set> Simd for Ymm<S> {
    const ISA: Isa = S::ISA;
    type Line = S::Line;
    #[inline(always)]
    unsafe fn line(low: Self, high: Self) -> S::Line {
        unsafe { S::line(low, high) }
    }
    #[inline(always)]
    unsafe fn halves(line: S::Line) -> [Self; 2] {
        unsafe { S::halves(line) }
    }
    #[inline(always)]
    unsafe fn load_half(p: *const u16) -> Self {
        unsafe { Self::of(_mm256_cvtph_ps(_mm_loadu_si128(p.cast()))) }
    }
    #[inline(always)]
    unsafe fn store_half(self, p: *mut u16) {
        unsafe { _mm_storeu_si128(p.cast(), _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(self.0)) }
    }
    #[inline(always)]
    unsafe fn sqrt(self) -> Self {
        unsafe { Self::of(_mm256_sqrt_ps(self.0)) }
    }
    #[inline(always)]
    unsafe fn fnma(self, b: Self, c: Self) -> Self {
        unsafe { Self::of(_mm256_fnmadd_ps(self.0, b.0, c.0)) }
    }
    #[inline(always)]
    unsafe fn gaps(now: i64, p: *const i64) -> Self {
        unsafe { Self::of(_mm256_set_m128(four_gaps(now, p.add(4)), four_gaps(now, p))) }
    }
    #[inline(always)]
    unsafe fn near_gaps(now: i32, p: *const i32) -> Self {
        unsafe {
            let gap = _mm256_sub_epi32(_mm256_set1_epi32(now), _mm256_loadu_si256(p.cast()));
            Self::of(_mm256_cvtepi32_ps(_mm256_abs_epi32(gap)))
        }
    }
    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        unsafe {
            let q = _mm_add_ps(_mm256_castps256_ps128(self.0), _mm256_extractf128_ps::<1>(self.0));
            let d = _mm_add_ps(q, _mm_movehl_ps(q, q));
            _mm_cvtss_f32(_mm_add_ss(d, _mm_shuffle_ps::<1>(d, d)))
        }
    }
    #[inline(always)]
    unsafe fn lanes_max(self) -> f32 {
        unsafe {
            let q = _mm_max_ps(_mm256_castps256_ps128(self.0), _mm256_extractf128_ps::<1>(self.0));
            let d = _mm_max_ps(q, _mm_movehl_ps(q, q));
            _mm_cvtss_f32(_mm_max_ss(d, _mm_shuffle_ps::<1>(d, d)))
        }
    }
    #[inline(always)]
    unsafe fn transpose(r: [Self; LANES]) -> [Self; LANES] {
        unsafe {
            // Pairs of rows, then fours, then the two halves of the registers.
            let lo = |a: usize| _mm256_unpacklo_ps(r[a].0, r[a + 1].0);
            let hi = |a: usize| _mm256_unpackhi_ps(r[a].0, r[a + 1].0);
            let four = |a, b| [_mm256_shuffle_ps::<0x44>(a, b), _mm256_shuffle_ps::<0xee>(a, b)];
            let ([c0, c1], [c2, c3]) = (four(lo(0), lo(2)), four(hi(0), hi(2)));
            let ([d0, d1], [d2, d3]) = (four(lo(4), lo(6)), four(hi(4), hi(6)));
            let low = |a, b| Self::of(_mm256_permute2f128_ps::<0x20>(a, b));
            let high = |a, b| Self::of(_mm256_permute2f128_ps::<0x31>(a, b));
            [
                low(c0, d0),
                low(c1, d1),
                low(c2, d2),
                low(c3, d3),
                high(c0, d0),
                high(c1, d1),
                high(c2, d2),
                high(c3, d3),
            ]
        }
    }
    #[inline(always)]
    unsafe fn sums(v: [Self; LANES]) -> Self {
        unsafe {
            // Halves of v[i] and v[i + 4] in one register, so that lanes l and l + 4 are added first, as in `sum`.
            let fold = |a: Self, b: Self| {
                let low = _mm256_permute2f128_ps::<0x20>(a.0, b.0);
                _mm256_add_ps(low, _mm256_permute2f128_ps::<0x31>(a.0, b.0))
            };
            let pair = |a: __m256, b: __m256| {
                let (even, odd) = (_mm256_shuffle_ps::<0x44>(a, b), _mm256_shuffle_ps::<0xee>(a, b));
                _mm256_add_ps(even, odd)
            };
            let (ab, cd) = (
                pair(fold(v[0], v[4]), fold(v[1], v[5])),
                pair(fold(v[2], v[6]), fold(v[3], v[7])),
            );
            let (even, odd) = (_mm256_shuffle_ps::<0x88>(ab, cd), _mm256_shuffle_ps::<0xdd>(ab, cd));
            Self::of(_mm256_add_ps(even, odd))
        }
    }
    #[inline(always)]
    unsafe fn at_most(p: *const i64, limit: i64) -> u64 {
        unsafe {
            let limit = _mm256_set1_epi64x(limit);
            let low = _mm256_cmpgt_epi64(_mm256_loadu_si256(p.cast()), limit);
            let high = _mm256_cmpgt_epi64(_mm256_loadu_si256(p.add(4).cast()), limit);
            let (low, high) = (_mm256_castsi256_pd(low), _mm256_castsi256_pd(high));
            let above = _mm256_movemask_pd(low) | _mm256_movemask_pd(high) << 4;
            above as u64 ^ 0xff
        }
    }
    #[inline(always)]
    unsafe fn changes(p: *const u8) -> u64 {
        unsafe {
            let mut same = 0;
            for half in [1, 0] {
                let p = p.add(32 * half);
                let equal = _mm256_cmpeq_epi8(_mm256_loadu_si256(p.cast()), _mm256_loadu_si256(p.add(1).cast()));
                same = same << 32 | u64::from(_mm256_movemask_epi8(equal) as u32);
            }
            !same
        }
    }
    #[inline(always)]
    unsafe fn prefetch(p: *const f32) {
        unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
    }
    #[inline(always)]
    unsafe fn unrolled_steps<const ROW: usize, const STEP: usize, const W: usize>(
        sums: &mut [tile::Sums<S::Line>; W],
        counts: [usize; 2],
        panel: usize,
        a: *const f32,
        b: [*const f32; W],
    ) {
        unsafe { S::unrolled_steps::<ROW, STEP, W>(sums, counts, panel, a, b) }
    }
}
