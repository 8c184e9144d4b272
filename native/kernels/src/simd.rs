//! Eight float lanes behind one trait: kernels are written once over `V: Simd` and compiled for each instruction set. Sums over
//! lanes have the same order everywhere; what is computed element by element is done in lines of sixteen, for wider registers.
//!
//! The pattern: a body is `#[inline(always)] unsafe fn body<V: Simd>(..)`, and [`simd_fn!`](crate::simd_fn) makes the
//! entry `name(isa, ..)` that runs it inside a function with the right target features (only there do the intrinsics
//! become single instructions). Entries are `inline(never)`, since a register tile inlined into its outer loops spills; the
//! attribute is on the entry itself because rustc 1.95 does not pass it on for a function with target features.
//! Beware of lane arithmetic in closures (`map_or`, `from_fn`): one that is not inlined has no target features, and
//! each of its intrinsics becomes a call. Loops and `match` are safe.

use crate::isa::Isa;

mod portable;
pub mod tile;

pub use portable::Portable;

pub const LANES: usize = 8;
/// Floats of a cache line.
pub const LINE: usize = 16;

/// `f32`s that are computed element by element: the lanes of a vector, or a [line](Simd::Line).
///
/// # Safety
/// As [`Simd`].
#[expect(
    clippy::missing_safety_doc,
    clippy::undocumented_unsafe_blocks,
    reason = "one contract for all methods, stated above"
)]
pub unsafe trait Elements: Copy {
    const COUNT: usize;
    /// As many whole numbers.
    type Whole: Copy;
    unsafe fn zero() -> Self;
    unsafe fn splat(x: f32) -> Self;
    /// [`Elements::splat`] of a constant that stays in a register over a loop. The compiler assumes that reloading a plain one is cheap,
    /// and does so for every vector under register pressure.
    #[inline(always)]
    unsafe fn constant(x: f32) -> Self {
        unsafe { Self::splat(x) }
    }
    unsafe fn load(p: *const f32) -> Self;
    /// Elements `n..` are zero; memory beyond `p[n]` is not touched.
    unsafe fn load_part(p: *const f32, n: usize) -> Self;
    unsafe fn store(self, p: *mut f32);
    /// Writes the first `n` elements only.
    unsafe fn store_part(self, p: *mut f32, n: usize);
    unsafe fn add(self, o: Self) -> Self;
    unsafe fn sub(self, o: Self) -> Self;
    unsafe fn mul(self, o: Self) -> Self;
    unsafe fn div(self, o: Self) -> Self;
    unsafe fn max(self, o: Self) -> Self;
    unsafe fn min(self, o: Self) -> Self;
    /// `self * b + c`, one rounding where the machine has it.
    unsafe fn fma(self, b: Self, c: Self) -> Self;
    /// `self` where `x > 0`, else 0.
    unsafe fn where_positive(self, x: Self) -> Self;
    /// The nearest whole number, of two the even one.
    unsafe fn nearest(self) -> Self::Whole;
    unsafe fn from_whole(n: Self::Whole) -> Self;
    /// `self * 2^n` where both are normal numbers.
    unsafe fn times_two_to(self, n: Self::Whole) -> Self;
    /// A normal positive number as `m * 2^n`, with `m` in `[sqrt(1/2), sqrt(2))`.
    unsafe fn split(self) -> (Self, Self::Whole);

    /// Elements `..left` of `p`, all when there are that many; the rest is zero.
    #[inline(always)]
    unsafe fn load_upto(p: *const f32, left: usize) -> Self {
        unsafe {
            if left >= Self::COUNT {
                Self::load(p)
            } else {
                Self::load_part(p, left)
            }
        }
    }
    /// Writes the first `left` elements, at most all.
    #[inline(always)]
    unsafe fn store_upto(self, p: *mut f32, left: usize) {
        unsafe {
            if left >= Self::COUNT {
                self.store(p)
            } else {
                self.store_part(p, left)
            }
        }
    }
    /// `2^x` for `x` in [-126, 126], relative error below 1e-7 (degree-5 minimax on [-0.5, 0.5]). The vectors are interleaved step
    /// by step: a single chain of twenty dependent steps would leave the core idle.
    #[inline(always)]
    unsafe fn exp2<const N: usize>(x: [Self; N]) -> [Self; N] {
        unsafe {
            let mut whole = [Self::zero().nearest(); N];
            for (whole, x) in whole.iter_mut().zip(x) {
                *whole = x.nearest();
            }
            let mut f = x;
            for (f, whole) in f.iter_mut().zip(whole) {
                *f = f.sub(Self::from_whole(whole));
            }
            let mut p = [Self::constant(EXP2[5]); N];
            for c in [EXP2[4], EXP2[3], EXP2[2], EXP2[1], EXP2[0]] {
                for (p, f) in p.iter_mut().zip(f) {
                    *p = p.fma(f, Self::constant(c));
                }
            }
            for (p, whole) in p.iter_mut().zip(whole) {
                *p = p.times_two_to(whole);
            }
            p
        }
    }
    /// `log2(x)` for normal positive `x`, absolute error below 2e-7 (1 + |log2 x|).
    #[inline(always)]
    unsafe fn log2<const N: usize>(x: [Self; N]) -> [Self; N] {
        unsafe {
            let (mut exponent, mut s) = ([Self::zero().nearest(); N], x);
            for (exponent, s) in exponent.iter_mut().zip(&mut s) {
                let one = Self::constant(1.0);
                let (m, n) = s.split();
                *exponent = n;
                *s = m.sub(one).div(m.add(one));
            }
            let (mut square, mut p) = (s, [Self::constant(LOG2[3]); N]);
            for square in &mut square {
                *square = square.mul(*square);
            }
            for c in [LOG2[2], LOG2[1], LOG2[0]] {
                for (p, square) in p.iter_mut().zip(square) {
                    *p = p.fma(square, Self::constant(c));
                }
            }
            for ((p, s), exponent) in p.iter_mut().zip(s).zip(exponent) {
                *p = p.fma(s, Self::from_whole(exponent));
            }
            p
        }
    }
    /// `2^x`, clamped to the range of normal floats.
    #[inline(always)]
    unsafe fn exp2_clamped<const N: usize>(mut x: [Self; N]) -> [Self; N] {
        unsafe {
            for x in &mut x {
                *x = x.min(Self::constant(126.0));
            }
            for x in &mut x {
                *x = x.max(Self::constant(-126.0));
            }
            Self::exp2(x)
        }
    }
    /// `e^self`, clamped to the range of normal floats.
    #[inline(always)]
    unsafe fn exp(self) -> Self {
        unsafe {
            let [power] = Self::exp2_clamped([self.mul(Self::constant(std::f32::consts::LOG2_E))]);
            power
        }
    }
    /// `1 + e^-x`.
    #[inline(always)]
    unsafe fn one_plus_exp_neg<const N: usize>(mut x: [Self; N]) -> [Self; N] {
        unsafe {
            for x in &mut x {
                *x = x.mul(Self::constant(-std::f32::consts::LOG2_E));
            }
            let mut sums = Self::exp2_clamped(x);
            for sum in &mut sums {
                *sum = Self::constant(1.0).add(*sum);
            }
            sums
        }
    }
    /// `1 / (1 + e^-x)` of several at once, see [`Elements::exp2`].
    #[inline(always)]
    unsafe fn sigmoids<const N: usize>(x: [Self; N]) -> [Self; N] {
        unsafe {
            let mut y = Self::one_plus_exp_neg(x);
            for y in &mut y {
                *y = Self::constant(1.0).div(*y);
            }
            y
        }
    }
    /// `x * sigmoid(x)` of several at once. A division beats reciprocal + Newton on Zen 3.
    #[inline(always)]
    unsafe fn silus<const N: usize>(x: [Self; N]) -> [Self; N] {
        unsafe {
            let mut y = Self::one_plus_exp_neg(x);
            for (y, x) in y.iter_mut().zip(x) {
                *y = x.div(*y);
            }
            y
        }
    }
    /// `self * sigmoid(self)`.
    #[inline(always)]
    unsafe fn silu(self) -> Self {
        let [y] = unsafe { Self::silus([self]) };
        y
    }
    /// `1 / (1 + e^-self)`.
    #[inline(always)]
    unsafe fn sigmoid(self) -> Self {
        let [y] = unsafe { Self::sigmoids([self]) };
        y
    }
    /// Derivatives of [`Elements::silus`].
    #[inline(always)]
    unsafe fn silu_grads<const N: usize>(x: [Self; N]) -> [Self; N] {
        unsafe {
            let mut y = Self::sigmoids(x);
            for (y, x) in y.iter_mut().zip(x) {
                *y = y.mul(x).fma(Self::constant(1.0).sub(*y), *y);
            }
            y
        }
    }
}

// SAFETY: the vectors' own contract.
#[expect(
    clippy::undocumented_unsafe_blocks,
    reason = "one argument for all methods, stated above"
)]
unsafe impl<V: Simd> Elements for [V; 2] {
    const COUNT: usize = LINE;
    type Whole = [V::Whole; 2];
    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { [V::zero(); 2] }
    }
    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        unsafe { [V::splat(x); 2] }
    }
    #[inline(always)]
    unsafe fn constant(x: f32) -> Self {
        unsafe { [V::constant(x); 2] }
    }
    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        unsafe { [V::load(p), V::load(p.add(LANES))] }
    }
    #[inline(always)]
    unsafe fn load_part(p: *const f32, n: usize) -> Self {
        unsafe {
            [
                V::load_upto(p, n),
                V::load_part(p.wrapping_add(LANES), n.saturating_sub(LANES)),
            ]
        }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        unsafe {
            self[0].store(p);
            self[1].store(p.add(LANES));
        }
    }
    #[inline(always)]
    unsafe fn store_part(self, p: *mut f32, n: usize) {
        unsafe {
            self[0].store_upto(p, n);
            self[1].store_part(p.wrapping_add(LANES), n.saturating_sub(LANES));
        }
    }
    #[inline(always)]
    unsafe fn add(self, o: Self) -> Self {
        unsafe { [self[0].add(o[0]), self[1].add(o[1])] }
    }
    #[inline(always)]
    unsafe fn sub(self, o: Self) -> Self {
        unsafe { [self[0].sub(o[0]), self[1].sub(o[1])] }
    }
    #[inline(always)]
    unsafe fn mul(self, o: Self) -> Self {
        unsafe { [self[0].mul(o[0]), self[1].mul(o[1])] }
    }
    #[inline(always)]
    unsafe fn div(self, o: Self) -> Self {
        unsafe { [self[0].div(o[0]), self[1].div(o[1])] }
    }
    #[inline(always)]
    unsafe fn max(self, o: Self) -> Self {
        unsafe { [self[0].max(o[0]), self[1].max(o[1])] }
    }
    #[inline(always)]
    unsafe fn min(self, o: Self) -> Self {
        unsafe { [self[0].min(o[0]), self[1].min(o[1])] }
    }
    #[inline(always)]
    unsafe fn fma(self, b: Self, c: Self) -> Self {
        unsafe { [self[0].fma(b[0], c[0]), self[1].fma(b[1], c[1])] }
    }
    #[inline(always)]
    unsafe fn where_positive(self, x: Self) -> Self {
        unsafe { [self[0].where_positive(x[0]), self[1].where_positive(x[1])] }
    }
    #[inline(always)]
    unsafe fn nearest(self) -> Self::Whole {
        unsafe { [self[0].nearest(), self[1].nearest()] }
    }
    #[inline(always)]
    unsafe fn from_whole(n: Self::Whole) -> Self {
        unsafe { [V::from_whole(n[0]), V::from_whole(n[1])] }
    }
    #[inline(always)]
    unsafe fn times_two_to(self, n: Self::Whole) -> Self {
        unsafe { [self[0].times_two_to(n[0]), self[1].times_two_to(n[1])] }
    }
    #[inline(always)]
    unsafe fn split(self) -> (Self, Self::Whole) {
        unsafe {
            let ((low, n), (high, m)) = (self[0].split(), self[1].split());
            ([low, high], [n, m])
        }
    }
}

/// Eight `f32`s.
///
/// # Safety
/// Methods may only run on a CPU with the instructions of [`Simd::ISA`]: call them from a [`simd_fn!`](crate::simd_fn)
/// entry point. Pointers must be valid for the lanes read or written; no alignment is needed.
#[expect(
    clippy::missing_safety_doc,
    clippy::undocumented_unsafe_blocks,
    reason = "one contract for all methods, stated above"
)]
pub unsafe trait Simd: Elements + Send + Sync + 'static {
    const ISA: Isa;
    /// Sixteen `f32`s, in as few registers as the instruction set has: a row of the register tile.
    type Line: Elements;
    unsafe fn line(low: Self, high: Self) -> Self::Line;
    unsafe fn halves(line: Self::Line) -> [Self; 2];
    /// Eight FP16 numbers, widened.
    unsafe fn load_half(p: *const u16) -> Self;
    /// Rounds to nearest even FP16.
    unsafe fn store_half(self, p: *mut u16);
    /// Rounded as by [`Simd::store_half`].
    #[inline(always)]
    unsafe fn round_half(self) -> Self {
        let mut halves = [0; LANES];
        unsafe {
            self.store_half(halves.as_mut_ptr());
            Self::load_half(halves.as_ptr())
        }
    }
    unsafe fn sqrt(self) -> Self;
    /// `c - self * b`.
    unsafe fn fnma(self, b: Self, c: Self) -> Self;
    /// `|now - p[i]|` of eight integers, rounded to `f32`.
    unsafe fn gaps(now: i64, p: *const i64) -> Self;
    /// `|now - p[i]|` of eight integers that are not negative, rounded to `f32`.
    unsafe fn near_gaps(now: i32, p: *const i32) -> Self;
    /// Sum of the lanes, always in the same order.
    unsafe fn sum(self) -> f32;
    unsafe fn lanes_max(self) -> f32;
    /// Transposes.
    unsafe fn transpose(rows: [Self; LANES]) -> [Self; LANES];
    /// Lane `i` is the sum of the lanes of `v[i]`, in the order of [`Simd::sum`].
    unsafe fn sums(v: [Self; LANES]) -> Self;
    /// Bit `i` of eight: `p[i] <= limit`.
    unsafe fn at_most(p: *const i64, limit: i64) -> u64;
    /// Bit `i` of 64: `p[i]` and `p[i + 1]` differ.
    unsafe fn changes(p: *const u8) -> u64;
    /// Prefetches the cache line of `p`; never faults.
    unsafe fn prefetch(p: *const f32);
    /// The loops of [`tile::steps`] and [`tile::panel_steps`], unrolled 4x: `rounds` iterations in each of `panels` of A, which
    /// are `panel` floats apart.
    #[inline(always)]
    unsafe fn unrolled_steps<const ROW: usize, const STEP: usize, const W: usize>(
        sums: &mut [tile::Sums<Self::Line>; W],
        [panels, rounds]: [usize; 2],
        panel: usize,
        a: *const f32,
        b: [*const f32; W],
    ) {
        let deep = rounds * tile::UNROLL;
        for k in 0..panels * deep {
            let a = a.wrapping_add(k / deep * panel + k % deep * STEP);
            let b = b.map(|b| b.wrapping_add(k * tile::NR));
            unsafe { tile::step::<Self::Line, ROW, W>(sums, a, b) };
        }
    }
}

/// Defines `pub(crate) unsafe fn $name(isa, args..)` that runs `$body::<V>(args..)` with the features of `isa`.
#[macro_export]
macro_rules! simd_fn {
    ($(#[$meta:meta])* $vis:vis fn $name:ident = $body:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)?) => {
        /// # Safety
        /// This CPU has `isa`, and the arguments meet the contract of the body.
        $(#[$meta])*
        #[inline(never)]
        #[allow(clippy::too_many_arguments)]
        $vis unsafe fn $name(isa: $crate::isa::Isa, $($arg: $ty),*) $(-> $ret)? {
            /// # Safety
            /// This CPU has the features; the arguments meet the contract of the body.
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c")]
            #[allow(clippy::too_many_arguments)]
            unsafe fn avx2($($arg: $ty),*) $(-> $ret)? {
                // SAFETY: by this function's contract.
                unsafe { $body::<$crate::simd::Avx2>($($arg),*) }
            }
            /// # Safety
            /// This CPU has the features; the arguments meet the contract of the body.
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl")]
            #[allow(clippy::too_many_arguments)]
            unsafe fn avx512($($arg: $ty),*) $(-> $ret)? {
                // SAFETY: by this function's contract.
                unsafe { $body::<$crate::simd::Avx512>($($arg),*) }
            }
            /// # Safety
            /// The arguments meet the contract of the body.
            #[allow(clippy::too_many_arguments)]
            unsafe fn portable($($arg: $ty),*) $(-> $ret)? {
                // SAFETY: by this function's contract.
                unsafe { $body::<$crate::simd::Portable>($($arg),*) }
            }
            match isa {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: by this function's contract.
                $crate::isa::Isa::Avx2 => unsafe { avx2($($arg),*) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: by this function's contract.
                $crate::isa::Isa::Avx512 => unsafe { avx512($($arg),*) },
                // SAFETY: by this function's contract.
                _ => unsafe { portable($($arg),*) },
            }
        }
    };
}

/// A piece of work written once over the lanes; generic where [`simd_fn!`](crate::simd_fn) is not.
pub(crate) trait Kernel {
    /// Mark implementations `#[inline(always)]`.
    ///
    /// # Safety
    /// Called by [`dispatch`] only.
    unsafe fn run<V: Simd>(self);
}

/// Runs `kernel` with the features of `isa`.
///
/// # Safety
/// This CPU has `isa`; the kernel's own pointers are valid.
#[inline(never)]
pub(crate) unsafe fn dispatch<K: Kernel>(isa: Isa, kernel: K) {
    /// # Safety
    /// This CPU has the features; the kernel's pointers are valid.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn avx2<K: Kernel>(kernel: K) {
        // SAFETY: by this function's contract.
        unsafe { kernel.run::<Avx2>() }
    }
    /// # Safety
    /// This CPU has the features; the kernel's pointers are valid.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn avx512<K: Kernel>(kernel: K) {
        // SAFETY: by this function's contract.
        unsafe { kernel.run::<Avx512>() }
    }
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: by this function's contract.
        Isa::Avx2 => unsafe { avx2(kernel) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: by this function's contract.
        Isa::Avx512 => unsafe { avx512(kernel) },
        // SAFETY: by this function's contract.
        _ => unsafe { kernel.run::<Portable>() },
    }
}

const EXP2: [f32; 6] = [
    1.000_000_1,
    0.693_146_97,
    0.240_221_2,
    0.055_507_133,
    0.009_675_542,
    0.001_327_647_2,
];

/// log2((1 + s) / (1 - s)) / s in powers of s^2, minimax for |s| <= 0.172: relative error below 2e-8, below the rounding error.
const LOG2: [f32; 4] = [2.885_39, 0.961_798_85, 0.576_713_86, 0.431_748_33];
/// Bits of sqrt(1/2): mantissas are taken from [sqrt(1/2), sqrt(2)).
const ROOT_HALF: i32 = 0x3f35_04f3;

#[cfg(target_arch = "x86_64")]
pub use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86;
#[cfg(target_arch = "x86_64")]
mod x86_line;
#[cfg(target_arch = "x86_64")]
mod x86_tile;

#[cfg(test)]
mod tests;
