//! Exact sums of non-negative doubles: a fixed-point number wide enough for every square of an f32. Integer addition is
//! associative, so partial sums may be computed anywhere and combined in any order.

use crate::arena::Pod;

/// Limbs of 32 bits each, the lowest with weight 2^-320, and a last word that counts non-finite summands.
pub const WORDS: usize = LIMBS + 1;
const LIMBS: usize = 20;
const BITS: usize = 32;
const LOWEST: i32 = -320;
const MASK: i64 = (1 << BITS) - 1;

#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactSum(pub [i64; WORDS]);

// SAFETY: plain integers without padding.
unsafe impl Pod for ExactSum {}

impl ExactSum {
    pub const ZERO: ExactSum = ExactSum([0; WORDS]);

    /// Consecutive sums; `None` if the words are not a whole number of sums.
    pub fn of(words: &[i64]) -> Option<&[ExactSum]> {
        let whole = words.len().is_multiple_of(WORDS);
        // SAFETY: a sum is its words.
        whole.then(|| unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), words.len() / WORDS) })
    }

    pub fn of_mut(words: &mut [i64]) -> Option<&mut ExactSum> {
        // SAFETY: a sum is its words.
        (words.len() == WORDS).then(|| unsafe { &mut *words.as_mut_ptr().cast() })
    }

    /// Bits of the summand below 2^-320 are truncated.
    #[inline]
    pub fn add(&mut self, x: f64) {
        let bits = x.to_bits();
        let exponent = (bits >> 52 & 0x7ff) as i32;
        let fraction = bits & ((1 << 52) - 1);
        let mantissa = if exponent == 0 { fraction } else { fraction | 1 << 52 };
        let at = exponent.max(1) - 1075 - LOWEST;
        let (mantissa, at) = match at {
            ..=-64 => (0, 0),
            -63..0 => (mantissa >> -at, 0),
            _ => (mantissa, at as usize),
        };
        let limb = at / BITS;
        if limb + 3 > LIMBS {
            self.0[LIMBS] += 1;
            return;
        }
        let wide = u128::from(mantissa) << (at % BITS);
        for (k, word) in self.0[limb..limb + 3].iter_mut().enumerate() {
            *word += (wide >> (BITS * k)) as i64 & MASK;
        }
    }

    pub fn merge(&mut self, other: &ExactSum) {
        self.0.iter_mut().zip(&other.0).for_each(|(to, x)| *to += x);
    }

    /// Propagates carries; needed before 2^31 summands have been added.
    pub fn carry(&mut self) {
        for k in 0..LIMBS - 1 {
            self.0[k + 1] += self.0[k] >> BITS;
            self.0[k] &= MASK;
        }
    }

    /// The rounded sum; infinite if a summand was not finite.
    pub fn value(mut self) -> f64 {
        if self.0[LIMBS] != 0 {
            return f64::INFINITY;
        }
        self.carry();
        let limbs = self.0[..LIMBS].iter().enumerate().rev();
        limbs.fold(0.0, |sum, (k, limb)| {
            sum + *limb as f64 * 2f64.powi(k as i32 * BITS as i32 + LOWEST)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::numbers;

    fn sum(values: impl Iterator<Item = f64>) -> ExactSum {
        let mut sum = ExactSum::ZERO;
        values.for_each(|x| sum.add(x));
        sum.carry();
        sum
    }

    #[test]
    fn order_and_parts_do_not_matter() {
        let squares: Vec<f64> = (0..4000)
            .zip(numbers(1, 4000))
            .map(|(i, x)| x * x * 2f64.powi(i % 200 - 150))
            .collect();
        let whole = sum(squares.iter().copied());
        assert_eq!(whole, sum(squares.iter().rev().copied()));
        for cut in [0, 1, 1999, 4000] {
            let (left, right) = squares.split_at(cut);
            let mut both = sum(right.iter().copied());
            both.merge(&sum(left.iter().copied()));
            both.carry();
            assert_eq!(whole, both);
        }
        let mut ascending = squares;
        ascending.sort_by(f64::total_cmp);
        let want: f64 = ascending.iter().sum();
        assert!((whole.value() - want).abs() <= 1e-14 * want);
    }

    #[test]
    fn every_square_of_an_f32_fits_and_what_is_not_finite_shows() {
        for x in [f32::from_bits(1), f32::MIN_POSITIVE, 1.0, 3.5, f32::MAX] {
            let square = f64::from(x) * f64::from(x);
            assert_eq!(sum([square].into_iter()).value(), square);
        }
        assert_eq!(sum([].into_iter()).value(), 0.0);
        for bad in [f64::NAN, f64::INFINITY] {
            assert_eq!(sum([1.0, bad].into_iter()).value(), f64::INFINITY);
        }
    }
}
