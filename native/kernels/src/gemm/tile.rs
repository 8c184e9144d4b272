//! The register tile: 6 rows x 16 columns of C in 12 registers, 2 for a row of B and 1 for an element of A.

use crate::simd::{LANES, Simd};
use crate::simd_fn;

/// Rows of the tile.
pub const MR: usize = 6;
/// Columns of the tile.
pub const NR: usize = 2 * LANES;

/// Steps of k per loop turn.
const UNROLL: usize = 4;
/// How many steps ahead the packed operands are prefetched.
const AHEAD: usize = 16;

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

#[inline(always)]
unsafe fn step<V: Simd>(acc: &mut [[V; 2]; MR], a: *const f32, b: *const f32) {
    unsafe {
        let (b0, b1) = (V::load(b), V::load(b.add(LANES)));
        for (r, [c0, c1]) in acc.iter_mut().enumerate() {
            let x = V::splat(*a.add(r));
            *c0 = x.fma(b0, *c0);
            *c1 = x.fma(b1, *c1);
        }
    }
}

#[inline(always)]
unsafe fn tile_body<V: Simd>(t: &Tile) {
    unsafe {
        let mut acc = [[V::zero(); 2]; MR];
        let (mut a, mut b) = (t.a, t.b);
        for r in 0..MR {
            V::prefetch(t.c.wrapping_add(r * t.stride));
        }
        for _ in 0..t.k / UNROLL {
            for line in 0..UNROLL {
                V::prefetch(b.wrapping_add((AHEAD + line) * NR));
            }
            V::prefetch(a.wrapping_add((AHEAD + UNROLL) * MR));
            for u in 0..UNROLL {
                step(&mut acc, a.add(u * MR), b.add(u * NR));
            }
            a = a.add(UNROLL * MR);
            b = b.add(UNROLL * NR);
        }
        for u in 0..t.k % UNROLL {
            step(&mut acc, a.add(u * MR), b.add(u * NR));
        }
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
