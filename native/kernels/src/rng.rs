//! Counter-based random numbers: Philox4x32-10 (Salmon et al., SC'11). A draw is a pure function of a key and a
//! counter, so dropout masks can be drawn again in backward, any thread may draw any element, and a resumed run draws the
//! same numbers without carrying generator state.

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
pub fn words(key: Key, first: u64, out: &mut [u32]) {
    debug_assert_eq!(first % 4, 0);
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        done = out.len() / 32 * 32;
        for (block, chunk) in out[..done].chunks_exact_mut(32).enumerate() {
            // SAFETY: AVX2 is there, and the chunk holds the 32 words.
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

/// Dropout as two lanes of 16 bits a word: element `index` is kept when its 16-bit draw is at least the threshold.
#[derive(Clone, Copy, Debug)]
pub struct Dropout {
    pub key: Key,
    /// `round(p * 65536)`: drop probability in 1/65536ths. 0 keeps all.
    pub threshold: u32,
    /// `1 / (1 - p)` for the quantised p.
    pub scale: f32,
    memory: Memory,
}

/// What happens to the decisions of a dropout. A bit each, eight of a counter to a byte: 1 is kept.
#[derive(Clone, Copy, Debug)]
enum Memory {
    /// Drawn whenever they are needed.
    None,
    /// Drawn, and left here.
    Write(*mut u8),
    /// Found here.
    Read(*const u8),
}

// SAFETY: addresses; the kernel that hands them out keeps tasks apart, by rows.
unsafe impl Send for Memory {}
unsafe impl Sync for Memory {}

impl Dropout {
    pub fn new(key: Key, p: f32) -> Dropout {
        let threshold = (p * 65536.0).round() as u32;
        Dropout {
            key,
            threshold,
            scale: (65536.0 / (65536.0 - f64::from(threshold))) as f32,
            memory: Memory::None,
        }
    }

    /// The same, leaving its decisions at `to`, a byte for every eight elements.
    pub fn writing(self, to: *mut u8) -> Dropout {
        let memory = Memory::Write(to);
        Dropout { memory, ..self }
    }

    /// The same with the decisions found at `from`.
    pub fn reading(self, from: *const u8) -> Dropout {
        let memory = Memory::Read(from);
        Dropout { memory, ..self }
    }

    /// No dropout.
    pub fn off() -> Dropout {
        Dropout {
            key: Key(0, 0),
            threshold: 0,
            scale: 1.0,
            memory: Memory::None,
        }
    }

    /// Whether decisions are written or read: then no more must be asked for than there are.
    pub fn remembers(&self) -> bool {
        !matches!(self.memory, Memory::None)
    }

    pub fn is_off(&self) -> bool {
        self.threshold == 0
    }

    /// Factor (0 or `scale`) of one element; the plain form of [`Dropout::fill`].
    pub fn factor(&self, index: u64) -> f32 {
        let kept = self.decide(index >> 3) >> (index & 7) & 1 == 1;
        if kept { self.scale } else { 0.0 }
    }

    /// Factors of elements `first..first + out.len()`; `first` is a multiple of 8. Every instruction set gives the
    /// same factors: the draws are integers.
    pub fn fill(&self, first: u64, out: &mut [f32]) {
        debug_assert_eq!(first % 8, 0);
        #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]
        let mut done = 0;
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            done = out.len() / 64 * 64;
            for (block, chunk) in out[..done].chunks_exact_mut(64).enumerate() {
                let counter = (first >> 3) + 8 * block as u64;
                // SAFETY: AVX2 is there, the chunk holds the 64 factors, and the memory their bits.
                unsafe {
                    match self.memory {
                        Memory::None => {
                            avx2::dropout64(self, counter, chunk.as_mut_ptr());
                        }
                        Memory::Write(bits) => {
                            let kept = avx2::dropout64(self, counter, chunk.as_mut_ptr());
                            bits.add(counter as usize).cast::<[u8; 8]>().write(kept);
                        }
                        Memory::Read(bits) => {
                            let kept = bits.add(counter as usize).cast::<[u8; 8]>().read();
                            avx2::factors64(self.scale, kept, chunk.as_mut_ptr());
                        }
                    }
                }
            }
        }
        for (block, chunk) in out[done..].chunks_mut(8).enumerate() {
            let counter = ((first + done as u64) >> 3) + block as u64;
            // SAFETY: the memory holds a byte for every counter.
            let kept = match self.memory {
                Memory::Read(bits) => unsafe { *bits.add(counter as usize) },
                _ => self.decide(counter),
            };
            if let Memory::Write(bits) = self.memory {
                // SAFETY: as above.
                unsafe { *bits.add(counter as usize) = kept };
            }
            for (bit, factor) in chunk.iter_mut().enumerate() {
                *factor = if kept >> bit & 1 == 1 { self.scale } else { 0.0 };
            }
        }
    }

    /// Which of a counter's eight elements are kept.
    fn decide(&self, counter: u64) -> u8 {
        let words = philox(self.key, counter);
        (0..8).fold(0, |kept, half| {
            let draw = (words[half >> 1] >> (16 * (half & 1))) & 0xffff;
            kept | u8::from(draw >= self.threshold) << half
        })
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{Dropout, Key, MUL, WEYL};
    use std::arch::x86_64::*;

    /// Philox at eight consecutive counters, see [`COUNTERS`]. A word has a lane of 64 bits, whose upper half no
    /// multiplication reads and nobody cleans.
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
        words(key, 12, &mut many);
        assert!((0..1001).all(|i| many[i] == word(key, 12 + i as u64)));
    }

    #[test]
    fn decisions_that_were_written_are_read_again() {
        let dropout = Dropout::new(Key::new(1, 2, 3), 0.2);
        let mut bits = vec![0u8; 32];
        let (mut drawn, mut written, mut read) = ([0.0; 200], [0.0; 200], [0.0; 200]);
        dropout.fill(56, &mut drawn);
        dropout.writing(bits.as_mut_ptr()).fill(56, &mut written);
        dropout.reading(bits.as_ptr()).fill(56, &mut read);
        assert_eq!((written, read), (drawn, drawn));
        bits[9] ^= 4;
        dropout.reading(bits.as_ptr()).fill(56, &mut read);
        let other: Vec<usize> = (0..200).filter(|i| read[*i] != drawn[*i]).collect();
        assert_eq!(other, [9 * 8 - 56 + 2]);
    }

    #[test]
    fn dropout_fill_equals_the_plain_form_and_keeps_the_stated_share() {
        let dropout = Dropout::new(Key::new(1, 2, 3), 0.2);
        let mut factors = vec![0.0; 100_003];
        dropout.fill(16, &mut factors);
        for (i, factor) in factors.iter().enumerate() {
            assert_eq!(*factor, dropout.factor(16 + i as u64));
        }
        let kept = factors.iter().filter(|f| **f > 0.0).count() as f64 / factors.len() as f64;
        assert!((kept - 0.8).abs() < 0.005, "kept {kept}");
        let mean = factors.iter().map(|f| f64::from(*f)).sum::<f64>() / factors.len() as f64;
        assert!((mean - 1.0).abs() < 0.01, "mean {mean}");
    }
}
