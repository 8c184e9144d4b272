//! Philox and dropout at eight counters at once.

use super::{Dropout, Key, MUL, WEYL};
use std::arch::x86_64::*;

/// Philox at eight consecutive counters, see [`COUNTERS`]. Each word occupies a 64-bit lane, whose upper half is garbage that no
/// multiplication reads.
///
/// # Safety
/// This CPU has AVX2.
#[inline]
#[target_feature(enable = "avx2")]
fn philox8(key: Key, counter: u64) -> [__m256i; 4] {
    let (m0, m1) = (_mm256_set1_epi64x(MUL[0] as i64), _mm256_set1_epi64x(MUL[1] as i64));
    let zero = _mm256_setzero_si256();
    let mut fours = [0, 4].map(|first| {
        let counters = _mm256_add_epi64(
            _mm256_set1_epi64x(counter as i64),
            _mm256_setr_epi64x(first, first + 1, first + 2, first + 3),
        );
        [counters, _mm256_srli_epi64::<32>(counters), zero, zero]
    });
    let (mut k0, mut k1) = (key.0, key.1);
    for _ in 0..10 {
        let (x0, x1) = (_mm256_set1_epi32(k0 as i32), _mm256_set1_epi32(k1 as i32));
        for c in &mut fours {
            let (p0, p1) = (_mm256_mul_epu32(c[0], m0), _mm256_mul_epu32(c[2], m1));
            let (high0, high1) = (_mm256_srli_epi64::<32>(p0), _mm256_srli_epi64::<32>(p1));
            *c = [
                _mm256_xor_si256(high1, _mm256_xor_si256(c[1], x0)),
                p1,
                _mm256_xor_si256(high0, _mm256_xor_si256(c[3], x1)),
                p0,
            ];
        }
        (k0, k1) = (k0.wrapping_add(WEYL[0]), k1.wrapping_add(WEYL[1]));
    }
    let [[a, b], [c, d]] = fours.map(|c| {
        let first = _mm256_blend_epi32::<0xaa>(c[0], _mm256_slli_epi64::<32>(c[1]));
        let last = _mm256_blend_epi32::<0xaa>(c[2], _mm256_slli_epi64::<32>(c[3]));
        [_mm256_unpacklo_epi64(first, last), _mm256_unpackhi_epi64(first, last)]
    });
    [a, b, c, d]
}

/// Which of the eight counters the lower and upper half of each of [`philox8`]'s registers belong to.
const COUNTERS: [[usize; 2]; 4] = [[0, 2], [1, 3], [4, 6], [5, 7]];

/// The 32 words of eight consecutive counters, in order.
///
/// # Safety
/// `out` is valid for 32 words.
#[target_feature(enable = "avx2")]
pub unsafe fn words32(key: Key, counter: u64, out: *mut u32) {
    for (pair, [low, high]) in philox8(key, counter).into_iter().zip(COUNTERS) {
        // SAFETY: eight counters of four words each, inside the caller's 32.
        unsafe {
            _mm_storeu_si128(out.add(4 * low).cast(), _mm256_castsi256_si128(pair));
            _mm_storeu_si128(out.add(4 * high).cast(), _mm256_extracti128_si256::<1>(pair));
        }
    }
}

/// 64 factors of eight consecutive counters, in order. Returns which are kept.
///
/// # Safety
/// `out` is valid for 64 floats.
#[target_feature(enable = "avx2")]
pub unsafe fn dropout64(dropout: &Dropout, counter: u64, out: *mut f32) -> [u8; 8] {
    let mut kept = [0; 8];
    let words = philox8(dropout.key, counter);
    let limit = _mm256_set1_epi32(dropout.threshold as i32 - 1);
    let scale = _mm256_set1_ps(dropout.scale);
    for (pair, [low, high]) in words.into_iter().zip(COUNTERS) {
        for (quad, at) in [
            (_mm256_castsi256_si128(pair), low),
            (_mm256_extracti128_si256::<1>(pair), high),
        ] {
            let keep = _mm256_cmpgt_epi32(_mm256_cvtepu16_epi32(quad), limit);
            let factors = _mm256_and_ps(_mm256_castsi256_ps(keep), scale);
            kept[at] = _mm256_movemask_ps(_mm256_castsi256_ps(keep)) as u8;
            // SAFETY: eight counters of eight floats each, inside the caller's 64.
            unsafe { _mm256_storeu_ps(out.add(8 * at), factors) };
        }
    }
    kept
}

/// 64 factors, `scale` where the bit is 1.
///
/// # Safety
/// `out` is valid for 64 floats.
#[target_feature(enable = "avx2")]
pub unsafe fn factors64(scale: f32, kept: [u8; 8], out: *mut f32) {
    let lanes = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    let scale = _mm256_set1_ps(scale);
    for (at, bits) in kept.into_iter().enumerate() {
        let bit = _mm256_and_si256(_mm256_set1_epi32(i32::from(bits)), lanes);
        let keep = _mm256_cmpeq_epi32(bit, lanes);
        // SAFETY: eight bytes of eight floats each, inside the caller's 64.
        unsafe { _mm256_storeu_ps(out.add(8 * at), _mm256_and_ps(_mm256_castsi256_ps(keep), scale)) };
    }
}
