//! Counter-based dropout: decisions are redrawn wherever they are needed, or stored as one bit per element.

use super::{Key, philox};
use crate::isa::Isa;

/// Dropout with 16-bit draws, two per random word: element `index` is kept when its draw is at least the threshold.
#[derive(Clone, Copy, Debug)]
pub struct Dropout {
    pub key: Key,
    /// `round(p * 65536)`: drop probability in 1/65536ths. 0 keeps all.
    pub threshold: u32,
    /// `1 / (1 - p)` for the quantised p.
    pub scale: f32,
    memory: Memory,
}

/// Storage of dropout decisions: one bit per element (1: kept), one byte per counter.
#[derive(Clone, Copy, Debug)]
enum Memory {
    /// Drawn whenever they are needed.
    None,
    /// Drawn, and stored here.
    Write(*mut u8),
    /// Read from here.
    Read(*const u8),
}

// SAFETY: addresses; the kernel that hands them out keeps tasks apart, by rows.
unsafe impl Send for Memory {}
// SAFETY: as above.
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

    /// The same, storing its decisions at `to`, one byte per eight elements.
    pub fn writing(self, to: *mut u8) -> Dropout {
        let memory = Memory::Write(to);
        Dropout { memory, ..self }
    }

    /// The same, reading the decisions from `from`.
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

    /// Whether decisions are stored: then requests must not exceed the stored elements.
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
    ///
    /// # Safety
    /// This CPU has `isa`; memory that was given for decisions holds a byte for every eight elements up to the last one.
    pub unsafe fn fill(&self, isa: Isa, first: u64, out: &mut [f32]) {
        debug_assert_eq!(first % 8, 0);
        #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]
        let mut done = 0;
        #[cfg(target_arch = "x86_64")]
        if isa != Isa::Portable {
            done = out.len() / 64 * 64;
            for (block, chunk) in out[..done].chunks_exact_mut(64).enumerate() {
                let counter = (first >> 3) + 8 * block as u64;
                // SAFETY: by this function's contract; the chunk holds the 64 factors.
                unsafe {
                    match self.memory {
                        Memory::None => {
                            super::avx2::dropout64(self, counter, chunk.as_mut_ptr());
                        }
                        Memory::Write(bits) => {
                            let kept = super::avx2::dropout64(self, counter, chunk.as_mut_ptr());
                            bits.add(counter as usize).cast::<[u8; 8]>().write(kept);
                        }
                        Memory::Read(bits) => {
                            let kept = bits.add(counter as usize).cast::<[u8; 8]>().read();
                            super::avx2::factors64(self.scale, kept, chunk.as_mut_ptr());
                        }
                    }
                }
            }
        }
        for (block, chunk) in out[done..].chunks_mut(8).enumerate() {
            let counter = ((first + done as u64) >> 3) + block as u64;
            let kept = match self.memory {
                // SAFETY: the memory holds a byte for every counter.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_that_were_written_are_read_again() {
        let dropout = Dropout::new(Key::new(1, 2, 3), 0.2);
        let mut bits = vec![0u8; 32];
        let (mut drawn, mut written, mut read) = ([0.0; 200], [0.0; 200], [0.0; 200]);
        // SAFETY: this CPU has what was detected; the bits cover the elements.
        unsafe { dropout.fill(Isa::detect(), 56, &mut drawn) };
        // SAFETY: this CPU has what was detected; the bits cover the elements.
        unsafe { dropout.writing(bits.as_mut_ptr()).fill(Isa::detect(), 56, &mut written) };
        // SAFETY: this CPU has what was detected; the bits cover the elements.
        unsafe { dropout.reading(bits.as_ptr()).fill(Isa::detect(), 56, &mut read) };
        assert_eq!((written, read), (drawn, drawn));
        bits[9] ^= 4;
        // SAFETY: this CPU has what was detected; the bits cover the elements.
        unsafe { dropout.reading(bits.as_ptr()).fill(Isa::detect(), 56, &mut read) };
        let other: Vec<usize> = (0..200).filter(|i| read[*i] != drawn[*i]).collect();
        assert_eq!(other, [9 * 8 - 56 + 2]);
    }

    #[test]
    fn dropout_fill_equals_the_plain_form_and_keeps_the_stated_share() {
        let dropout = Dropout::new(Key::new(1, 2, 3), 0.2);
        let mut factors = vec![0.0; 100_003];
        // SAFETY: this CPU has what was detected; the bits cover the elements.
        unsafe { dropout.fill(Isa::detect(), 16, &mut factors) };
        for (i, factor) in factors.iter().enumerate() {
            assert_eq!(*factor, dropout.factor(16 + i as u64));
        }
        let kept = factors.iter().filter(|f| **f > 0.0).count() as f64 / factors.len() as f64;
        assert!((kept - 0.8).abs() < 0.005, "kept {kept}");
        let mean = factors.iter().map(|f| f64::from(*f)).sum::<f64>() / factors.len() as f64;
        assert!((mean - 1.0).abs() < 0.01, "mean {mean}");
    }
}
