//! The register tile against plain sums.

use super::*;

/// A tile of `depth` steps from sums of 0.25. `PANEL` is 0 for [`tile::steps`], else that of [`tile::panel_steps`].
struct Sum<const ROW: usize, const STEP: usize, const PANEL: usize> {
    depth: usize,
    a: *const f32,
    b: *const f32,
    c: *mut f32,
}

impl<const ROW: usize, const STEP: usize, const PANEL: usize> Kernel for Sum<ROW, STEP, PANEL> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        // SAFETY: by the contract of `dispatch`.
        unsafe {
            let mut sums = [[V::splat(0.25); 2]; tile::MR];
            match PANEL {
                0 => tile::steps::<V, ROW, STEP>(&mut sums, self.depth, self.a, self.b),
                _ => tile::panel_steps::<V>(&mut sums, self.depth, PANEL, self.a, self.b),
            }
            for (r, [low, high]) in sums.into_iter().enumerate() {
                low.store(self.c.add(r * tile::NR));
                high.store(self.c.add(r * tile::NR + LANES));
            }
        }
    }
}

/// The tile against one multiply-add after the other, bit for bit, for every number of remaining steps after the unrolled loop.
fn check_tile<const ROW: usize, const STEP: usize, const PANEL: usize>() {
    let place = |r: usize, k: usize| match PANEL {
        0 => r * ROW + k * STEP,
        _ => k / tile::NR * PANEL + r * ROW + k % tile::NR * STEP,
    };
    for (isa, depth) in [Isa::Portable, Isa::detect()]
        .into_iter()
        .flat_map(|isa| (0..=21usize).chain([64, 98]).map(move |depth| (isa, depth)))
    {
        let draw = |i: usize| (i as f32 * 0.7).sin();
        // As long as the operands and no longer, so that a sanitiser would see a step too many.
        let a: Vec<f32> = (0..=(0..depth).map(|k| place(5, k)).max().unwrap_or(0))
            .map(draw)
            .collect();
        let b: Vec<f32> = (0..depth * tile::NR).map(|i| draw(i + 3)).collect();
        let mut c = [0.0; tile::MR * tile::NR];
        let sum = Sum::<ROW, STEP, PANEL> {
            depth,
            a: a.as_ptr(),
            b: b.as_ptr(),
            c: c.as_mut_ptr(),
        };
        // SAFETY: the operands hold `depth` steps, C is a whole tile, the instruction set is this CPU's.
        unsafe { dispatch(isa, sum) };
        for (at, got) in c.into_iter().enumerate() {
            let (r, j) = (at / tile::NR, at % tile::NR);
            let expected = (0..depth).fold(0.25, |sum, k| fma(isa, a[place(r, k)], b[k * tile::NR + j], sum));
            assert_eq!(
                got.to_bits(),
                expected.to_bits(),
                "{isa:?}, rows {ROW} apart, steps {STEP}, panels {PANEL}: depth {depth}, row {r}, column {j}: {got} for {expected}"
            );
        }
    }
}

#[test]
fn the_tile_adds_up_in_order_to_the_bit() {
    // The left operands of gemm, of attention's products along rows and down columns, of FuXi's, and of scores.
    check_tile::<1, 6, 0>();
    check_tile::<56, 1, 0>();
    check_tile::<104, 1, 0>();
    check_tile::<1, 104, 0>();
    check_tile::<288, 1, 0>();
    check_tile::<1, 288, 0>();
    check_tile::<16, 1, 4608>();
}
