//! FP16 and BF16 in plain Rust: the conversions of F16C for machines without it and for single values; and unbiased stochastic
//! rounding.

/// IEEE FP16 bits to float.
pub fn half_to_float(h: u16) -> f32 {
    let sign = u32::from(h >> 15) << 31;
    let exponent = u32::from(h >> 10) & 0x1f;
    let mantissa = u32::from(h) & 0x3ff;
    let bits = match (exponent, mantissa) {
        (0, _) => (f32::from(mantissa as u16) * 2f32.powi(-24)).to_bits(),
        (0x1f, 0) => 0x7f80_0000,
        (0x1f, _) => 0x7fc0_0000 | (mantissa << 13),
        _ => ((exponent + 112) << 23) | (mantissa << 13),
    };
    f32::from_bits(sign | bits)
}

/// Float to IEEE FP16 bits, round to nearest even; too large becomes infinity.
pub fn float_to_half(x: f32) -> u16 {
    let sign = ((x.to_bits() >> 16) & 0x8000) as u16;
    let magnitude = x.abs();
    if magnitude.is_nan() {
        return sign | 0x7e00 | ((x.to_bits() >> 13) & 0x3ff) as u16;
    }
    if magnitude >= 65520.0 {
        return sign | 0x7c00;
    }
    if magnitude < 2f32.powi(-14) {
        return sign | (magnitude * 2f32.powi(24)).round_ties_even() as u16;
    }
    let bits = magnitude.to_bits();
    let rounded = bits + 0xfff + ((bits >> 13) & 1);
    sign | ((rounded >> 13) - (112 << 10)) as u16
}

/// Float to FP16 bits, rounded up or down by a random word.
pub fn float_to_half_randomly(x: f32, word: u32) -> u16 {
    let magnitude = x.abs();
    if magnitude.is_nan() || magnitude >= 65504.0 {
        return float_to_half(x);
    }
    let sign = ((x.to_bits() >> 16) & 0x8000) as u16;
    if magnitude < 2f32.powi(-14) {
        // In units of the smallest subnormal; the sum is exact in f64.
        let units = f64::from(magnitude) * 2f64.powi(24) + f64::from(word) * 2f64.powi(-32);
        return sign | units as u16;
    }
    let rounded = magnitude.to_bits() + (word >> 19);
    sign | ((rounded >> 13) - (112 << 10)) as u16
}

/// Float to BF16 bits, the upper half of an f32; round to nearest even.
pub fn float_to_brain(x: f32) -> u16 {
    let bits = x.to_bits();
    if x.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16) as u16
}

/// Float to BF16 bits, rounded up or down by a random word.
pub fn float_to_brain_randomly(x: f32, word: u32) -> u16 {
    match x.is_finite() && x.abs() < f32::from_bits(0x7f7f_0000) {
        true => ((x.to_bits() + (word >> 16)) >> 16) as u16,
        false => float_to_brain(x),
    }
}

pub fn brain_to_float(b: u16) -> f32 {
    f32::from_bits(u32::from(b) << 16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Key, word};

    type Rounding = (fn(f32, u32) -> u16, fn(f32) -> u16, fn(u16) -> f32);
    const KINDS: [Rounding; 2] = [
        (float_to_half_randomly, float_to_half, half_to_float),
        (float_to_brain_randomly, float_to_brain, brain_to_float),
    ];

    #[test]
    fn random_rounding_keeps_the_mean_and_gives_one_of_two_neighbours() {
        let key = Key::new(1, 2, 3);
        for (randomly, nearest, widen) in KINDS {
            for x in [0.3f32, -1.7, 1234.567, 3.3e-5, -4.1e-6, 2.9e-8, 7.77e-12] {
                let draws: Vec<f32> = (0..20_000).map(|i| widen(randomly(x, word(key, i)))).collect();
                let near = widen(nearest(x));
                let step = draws.iter().fold(0f32, |a, y| a.max((y - near).abs()));
                assert!(draws.iter().all(|y| (y - x).abs() <= step || step == 0.0), "{x}");
                let mean = draws.iter().map(|y| f64::from(*y)).sum::<f64>() / draws.len() as f64;
                assert!(
                    (mean - f64::from(x)).abs() <= f64::from(step) * 0.02,
                    "{x}: mean {mean}, step {step}"
                );
            }
        }
    }

    #[test]
    fn what_is_stored_exactly_stays_so() {
        for (randomly, nearest, widen) in KINDS {
            for bits in 0..=u16::MAX {
                let x = widen(bits);
                if x.is_nan() {
                    assert!(widen(nearest(x)).is_nan() && widen(randomly(x, u32::MAX)).is_nan());
                } else {
                    assert_eq!(
                        [nearest(x), randomly(x, 0), randomly(x, u32::MAX)],
                        [bits; 3],
                        "{bits:x}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_is_too_large_becomes_infinity() {
        assert_eq!(half_to_float(float_to_half_randomly(7e4, 9)), f32::INFINITY);
        assert_eq!(brain_to_float(float_to_brain_randomly(-f32::MAX, 9)), f32::NEG_INFINITY);
    }
}
