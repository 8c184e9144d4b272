//! Eight lanes in plain Rust.

use super::elements::ROOT_HALF;
use super::{Elements, LANES, Simd};
use crate::half::{float_to_half, half_to_float};
use crate::isa::Isa;

/// Plain Rust lanes, for machines without AVX2 and as a reference in tests.
#[derive(Clone, Copy)]
pub struct Portable([f32; LANES]);

macro_rules! lanewise {
    ($self:ident, $o:ident, $e:expr) => {{
        let mut out = [0.0; LANES];
        for i in 0..LANES {
            out[i] = $e($self.0[i], $o.0[i]);
        }
        Portable(out)
    }};
}

// SAFETY: no intrinsics; pointers are the caller's promise.
#[expect(
    clippy::undocumented_unsafe_blocks,
    reason = "one argument for all methods, stated above"
)]
#[allow(clippy::needless_range_loop)]
unsafe impl Elements for Portable {
    const COUNT: usize = LANES;
    type Whole = [i32; LANES];
    #[inline(always)]
    unsafe fn zero() -> Self {
        Portable([0.0; LANES])
    }
    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        Portable([x; LANES])
    }
    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        Portable(unsafe { p.cast::<[f32; LANES]>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn load_part(p: *const f32, n: usize) -> Self {
        let mut out = [0.0; LANES];
        for (i, lane) in out.iter_mut().enumerate().take(n) {
            *lane = unsafe { *p.add(i) };
        }
        Portable(out)
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        unsafe { p.cast::<[f32; LANES]>().write_unaligned(self.0) }
    }
    #[inline(always)]
    unsafe fn store_part(self, p: *mut f32, n: usize) {
        for i in 0..n.min(LANES) {
            unsafe { *p.add(i) = self.0[i] };
        }
    }
    #[inline(always)]
    unsafe fn add(self, o: Self) -> Self {
        lanewise!(self, o, |a, b| a + b)
    }
    #[inline(always)]
    unsafe fn sub(self, o: Self) -> Self {
        lanewise!(self, o, |a, b| a - b)
    }
    #[inline(always)]
    unsafe fn mul(self, o: Self) -> Self {
        lanewise!(self, o, |a, b| a * b)
    }
    #[inline(always)]
    unsafe fn div(self, o: Self) -> Self {
        lanewise!(self, o, |a, b| a / b)
    }
    // As the x86 instructions: the second operand when either is NaN.
    #[inline(always)]
    unsafe fn max(self, o: Self) -> Self {
        lanewise!(self, o, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    unsafe fn min(self, o: Self) -> Self {
        lanewise!(self, o, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    unsafe fn fma(self, b: Self, c: Self) -> Self {
        let mut out = c.0;
        for i in 0..LANES {
            out[i] += self.0[i] * b.0[i];
        }
        Portable(out)
    }
    #[inline(always)]
    unsafe fn where_positive(self, x: Self) -> Self {
        lanewise!(self, x, |a, b| if b > 0.0 { a } else { 0.0 })
    }
    #[inline(always)]
    unsafe fn nearest(self) -> [i32; LANES] {
        self.0.map(|x| x.round_ties_even() as i32)
    }
    #[inline(always)]
    unsafe fn from_whole(n: [i32; LANES]) -> Self {
        Portable(n.map(|n| n as f32))
    }
    #[inline(always)]
    unsafe fn times_two_to(self, n: [i32; LANES]) -> Self {
        Portable(std::array::from_fn(|i| {
            f32::from_bits((self.0[i].to_bits() as i32).wrapping_add(n[i] << 23) as u32)
        }))
    }
    #[inline(always)]
    unsafe fn split(self) -> (Self, [i32; LANES]) {
        let n = self.0.map(|x| (x.to_bits() as i32).wrapping_sub(ROOT_HALF) >> 23);
        let m = std::array::from_fn(|i| f32::from_bits((self.0[i].to_bits() as i32).wrapping_sub(n[i] << 23) as u32));
        (Portable(m), n)
    }
}

// SAFETY: as above.
#[expect(
    clippy::undocumented_unsafe_blocks,
    reason = "one argument for all methods, stated above"
)]
#[allow(clippy::needless_range_loop)]
unsafe impl Simd for Portable {
    const ISA: Isa = Isa::Portable;
    type Line = [Self; 2];
    #[inline(always)]
    unsafe fn line(low: Self, high: Self) -> [Self; 2] {
        [low, high]
    }
    #[inline(always)]
    unsafe fn halves(line: [Self; 2]) -> [Self; 2] {
        line
    }
    #[inline(always)]
    unsafe fn load_half(p: *const u16) -> Self {
        let mut out = [0.0; LANES];
        for (i, lane) in out.iter_mut().enumerate() {
            *lane = half_to_float(unsafe { *p.add(i) });
        }
        Portable(out)
    }
    #[inline(always)]
    unsafe fn store_half(self, p: *mut u16) {
        for i in 0..LANES {
            unsafe { *p.add(i) = float_to_half(self.0[i]) };
        }
    }
    #[inline(always)]
    unsafe fn sqrt(self) -> Self {
        Portable(self.0.map(f32::sqrt))
    }
    #[inline(always)]
    unsafe fn fnma(self, b: Self, c: Self) -> Self {
        let mut out = c.0;
        for i in 0..LANES {
            out[i] -= self.0[i] * b.0[i];
        }
        Portable(out)
    }
    #[inline(always)]
    unsafe fn gaps(now: i64, p: *const i64) -> Self {
        let p = unsafe { std::slice::from_raw_parts(p, LANES) };
        Portable(std::array::from_fn(|i| now.abs_diff(p[i]) as f64 as f32))
    }
    #[inline(always)]
    unsafe fn near_gaps(now: i32, p: *const i32) -> Self {
        let p = unsafe { std::slice::from_raw_parts(p, LANES) };
        Portable(std::array::from_fn(|i| (now - p[i]).abs() as f32))
    }
    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        let l = self.0;
        ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]))
    }
    #[inline(always)]
    unsafe fn lanes_max(self) -> f32 {
        self.0.iter().fold(f32::NEG_INFINITY, |a, &b| if a > b { a } else { b })
    }
    #[inline(always)]
    unsafe fn transpose(rows: [Self; LANES]) -> [Self; LANES] {
        std::array::from_fn(|j| Portable(std::array::from_fn(|i| rows[i].0[j])))
    }
    #[inline(always)]
    unsafe fn sums(v: [Self; LANES]) -> Self {
        Portable(v.map(|lanes| unsafe { lanes.sum() }))
    }
    #[inline(always)]
    unsafe fn at_most(p: *const i64, limit: i64) -> u64 {
        let p = unsafe { std::slice::from_raw_parts(p, LANES) };
        p.iter().rev().fold(0, |bits, x| bits << 1 | u64::from(*x <= limit))
    }
    #[inline(always)]
    unsafe fn changes(p: *const u8) -> u64 {
        let p = unsafe { std::slice::from_raw_parts(p, u64::BITS as usize + 1) };
        p.windows(2)
            .rev()
            .fold(0, |bits, two| bits << 1 | u64::from(two[0] != two[1]))
    }
    #[inline(always)]
    unsafe fn prefetch(_: *const f32) {}
}
