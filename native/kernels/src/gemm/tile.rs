//! The register tile on packed operands.

use crate::isa::Isa;
use crate::simd::tile::{MR, NR, steps};
use crate::simd::{Elements, Kernel, Simd, dispatch};

/// `C[6, 16 W] (+)= A[6, k] B[k, 16 W]`, A packed as `[k][6]`, each sixteen columns of B as `[k][16]`.
#[derive(Clone, Copy)]
pub struct Tile<const W: usize> {
    pub k: usize,
    pub a: *const f32,
    pub b: [*const f32; W],
    pub c: *mut f32,
    /// Floats from one row of C to the next.
    pub stride: usize,
    pub accumulate: bool,
}

impl<const W: usize> Kernel for Tile<W> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        // SAFETY: by the contract of [`tile`].
        unsafe {
            let c = |w: usize, r: usize| self.c.wrapping_add(r * self.stride + w * NR);
            let mut sums = [[V::Line::zero(); MR]; W];
            for w in 0..W {
                for r in 0..MR {
                    V::prefetch(c(w, r));
                }
            }
            steps::<V, 1, MR, W>(&mut sums, self.k, self.a, self.b);
            for (w, sums) in sums.into_iter().enumerate() {
                for (r, sum) in sums.into_iter().enumerate() {
                    let c = c(w, r);
                    if self.accumulate {
                        V::Line::load(c).add(sum).store(c);
                    } else {
                        sum.store(c);
                    }
                }
            }
        }
    }
}

/// Runs one tile.
///
/// # Safety
/// The packed operands hold `k` steps, C has room for 6 x 16 W at its stride, and this CPU has `isa`.
pub unsafe fn tile<const W: usize>(isa: Isa, tile: Tile<W>) {
    // SAFETY: by this function's contract.
    unsafe { dispatch(isa, tile) }
}
