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

mod elements;
mod line;
mod portable;
pub mod tile;

pub use elements::Elements;
pub use portable::Portable;

pub const LANES: usize = 8;
/// Floats of a cache line.
pub const LINE: usize = 16;

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
