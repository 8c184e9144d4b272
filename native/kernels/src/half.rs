//! FP16 storage in plain Rust: the conversions that F16C does in hardware, for machines without it and for single values.

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
