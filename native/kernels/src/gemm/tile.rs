//! The register tile on packed operands.

use crate::simd::tile::{MR, steps};
use crate::simd::{LANES, Simd};
use crate::simd_fn;

/// `C[6, 16] (+)= A[6, k] B[k, 16]`, A packed as `[k][6]` and B as `[k][16]`.
#[derive(Clone, Copy)]
pub struct Tile {
    pub k: usize,
    pub a: *const f32,
    pub b: *const f32,
    pub c: *mut f32,
    /// Floats from one row of C to the next.
    pub stride: usize,
    pub accumulate: bool,
}

/// # Safety
/// As [`tile`].
#[inline(always)]
unsafe fn tile_body<V: Simd>(t: &Tile) {
    // SAFETY: by this function's contract.
    unsafe {
        let mut acc = [[V::zero(); 2]; MR];
        for r in 0..MR {
            V::prefetch(t.c.wrapping_add(r * t.stride));
        }
        steps::<V, 1, MR>(&mut acc, t.k, t.a, t.b);
        for (r, [c0, c1]) in acc.into_iter().enumerate() {
            let c = t.c.add(r * t.stride);
            if t.accumulate {
                V::load(c).add(c0).store(c);
                V::load(c.add(LANES)).add(c1).store(c.add(LANES));
            } else {
                c0.store(c);
                c1.store(c.add(LANES));
            }
        }
    }
}
simd_fn!(
    /// Runs one tile.
    ///
    /// # Safety
    /// The packed operands hold `k` steps, C has room for 6 x 16 at its stride, and this CPU has `isa`.
    pub fn tile = tile_body(t: &Tile)
);
