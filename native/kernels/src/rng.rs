//! Counter-based random numbers: Philox4x32-10 (Salmon et al., SC'11). A draw is a pure function of a key and a
//! counter, so dropout masks can be drawn again in backward, any thread may draw any element, and a resumed run draws the
//! same numbers without carrying generator state.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod dropout;

use crate::isa::Isa;
pub use dropout::Dropout;

const MUL: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// What a stream of draws is for: streams with different keys are independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(pub u32, pub u32);

impl Key {
    /// Folds seed, step and purpose (an op's own number within the step) into a key.
    pub fn new(seed: u64, step: u64, purpose: u64) -> Key {
        let mut h = seed;
        for word in [step, purpose] {
            h = mix(h ^ mix(word.wrapping_add(0x9E37_79B9_7F4A_7C15)));
        }
        Key(h as u32, (h >> 32) as u32)
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Four random words for one counter value.
#[inline(always)]
pub fn philox(key: Key, counter: u64) -> [u32; 4] {
    philox_raw([counter as u32, (counter >> 32) as u32, 0, 0], [key.0, key.1])
}

#[inline(always)]
pub fn philox_raw(mut c: [u32; 4], mut k: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let p0 = u64::from(MUL[0]) * u64::from(c[0]);
        let p1 = u64::from(MUL[1]) * u64::from(c[2]);
        c = [
            (p1 >> 32) as u32 ^ c[1] ^ k[0],
            p1 as u32,
            (p0 >> 32) as u32 ^ c[3] ^ k[1],
            p0 as u32,
        ];
        k = [k[0].wrapping_add(WEYL[0]), k[1].wrapping_add(WEYL[1])];
    }
    c
}

/// Draw number `index` of the stream.
#[inline(always)]
pub fn word(key: Key, index: u64) -> u32 {
    philox(key, index >> 2)[(index & 3) as usize]
}

/// Draws `first..first + out.len()` of the stream; `first` is a multiple of 4.
///
/// # Safety
/// This CPU has `isa`.
pub unsafe fn words(isa: Isa, key: Key, first: u64, out: &mut [u32]) {
    debug_assert_eq!(first % 4, 0);
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    if isa != Isa::Portable {
        done = out.len() / 32 * 32;
        for (block, chunk) in out[..done].chunks_exact_mut(32).enumerate() {
            // SAFETY: by this function's contract; the chunk holds the 32 words.
            unsafe { avx2::words32(key, (first >> 2) + 8 * block as u64, chunk.as_mut_ptr()) };
        }
    }
    for (block, chunk) in out[done..].chunks_mut(4).enumerate() {
        let four = philox(key, ((first + done as u64) >> 2) + block as u64);
        chunk.copy_from_slice(&four[..chunk.len()]);
    }
}

/// Uniform in [0, 1), 24 bits.
#[inline(always)]
pub fn uniform(word: u32) -> f32 {
    (word >> 8) as f32 * (1.0 / 16_777_216.0)
}

/// Uniform in 0..n by multiplication; the bias is below n / 2^32.
#[inline(always)]
pub fn below(word: u32, n: u32) -> u32 {
    ((u64::from(word) * u64::from(n)) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers of the Random123 distribution (philox 4x32, 10 rounds).
    #[test]
    fn philox_matches_known_answers() {
        assert_eq!(
            philox_raw([0; 4], [0; 2]),
            [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]
        );
        assert_eq!(
            philox_raw([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            philox_raw(
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0]
            ),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn words_equal_the_plain_form() {
        let key = Key::new(4, 5, 6);
        let mut many = vec![0; 1001];
        // SAFETY: this CPU has what was detected.
        unsafe { words(Isa::detect(), key, 12, &mut many) };
        assert!((0..1001).all(|i| many[i] == word(key, 12 + i as u64)));
    }
}
