//! The register tile against plain sums.

use super::*;
use tile::{MR, NR};

/// `W` tiles of `depth` steps, from sums of 0.25. `PANEL` is 0 for [`tile::steps`], else that of [`tile::panel_steps`].
struct Sum<const ROW: usize, const STEP: usize, const PANEL: usize, const W: usize> {
    depth: usize,
    a: *const f32,
    b: [*const f32; W],
    c: *mut f32,
}

impl<const ROW: usize, const STEP: usize, const PANEL: usize, const W: usize> Kernel for Sum<ROW, STEP, PANEL, W> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        // SAFETY: by the contract of `dispatch`.
        unsafe {
            let mut sums = [[V::Line::splat(0.25); MR]; W];
            match PANEL {
                0 => tile::steps::<V, ROW, STEP, W>(&mut sums, self.depth, self.a, self.b),
                _ => tile::panel_steps::<V, W>(&mut sums, self.depth, PANEL, self.a, self.b),
            }
            for (r, sum) in sums.into_iter().flatten().enumerate() {
                sum.store(self.c.add(r * NR));
            }
        }
    }
}

/// The tile against one multiply-add after the other, bit for bit, for every number of remaining steps after the unrolled loop.
fn check_tile<const ROW: usize, const STEP: usize, const PANEL: usize, const W: usize>() {
    let place = |r: usize, k: usize| match PANEL {
        0 => r * ROW + k * STEP,
        _ => k / NR * PANEL + r * ROW + k % NR * STEP,
    };
    for (isa, depth) in available().flat_map(|isa| (0..=21usize).chain([64, 98]).map(move |depth| (isa, depth))) {
        let draw = |i: usize| (i as f32 * 0.7).sin();
        // As long as the operands and no longer, so that a sanitiser would see a step too many.
        let long = (0..depth).map(|k| place(MR - 1, k)).max().unwrap_or(0) + 1;
        let a: Vec<f32> = (0..long).map(draw).collect();
        let panels: [Vec<f32>; W] = std::array::from_fn(|w| (0..depth * NR).map(|i| draw(i + 3 + 1000 * w)).collect());
        let mut c = [[[0.0f32; NR]; MR]; W];
        let sum = Sum::<ROW, STEP, PANEL, W> {
            depth,
            a: a.as_ptr(),
            b: panels.each_ref().map(|b| b.as_ptr()),
            c: c.as_mut_ptr().cast(),
        };
        // SAFETY: the operands hold `depth` steps, C has room for the tiles, the instruction set is this CPU's.
        unsafe { dispatch(isa, sum) };
        for (w, (c, b)) in c.iter().zip(&panels).enumerate() {
            for (at, got) in c.as_flattened().iter().enumerate() {
                let (r, j) = (at / NR, at % NR);
                let expected = (0..depth).fold(0.25, |sum, k| fma(isa, a[place(r, k)], b[k * NR + j], sum));
                assert_eq!(
                    got.to_bits(),
                    expected.to_bits(),
                    "{isa:?}, rows {ROW} apart, steps {STEP}, panels {PANEL}: tile {w} of {W}, depth {depth}, row {r}, column {j}: {got} for {expected}"
                );
            }
        }
    }
}

fn check_tiles<const ROW: usize, const STEP: usize, const PANEL: usize>() {
    check_tile::<ROW, STEP, PANEL, 1>();
    check_tile::<ROW, STEP, PANEL, 2>();
}

#[test]
fn the_tile_adds_up_in_order_to_the_bit() {
    // The left operands of gemm, of attention's products along rows and down columns, of FuXi's, and of scores.
    check_tiles::<1, 6, 0>();
    check_tiles::<56, 1, 0>();
    check_tiles::<104, 1, 0>();
    check_tiles::<1, 104, 0>();
    check_tiles::<288, 1, 0>();
    check_tiles::<1, 288, 0>();
    check_tiles::<16, 1, 4608>();
}
