//! What is computed element by element, whatever the width of a register: arithmetic, and the elementary functions written over it.

/// `f32`s that are computed element by element: the lanes of a vector, or a [line](super::Simd::Line).
///
/// # Safety
/// As [`Simd`](super::Simd).
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

pub(super) const EXP2: [f32; 6] = [
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
pub(super) const ROOT_HALF: i32 = 0x3f35_04f3;
