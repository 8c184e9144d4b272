//! Reference speeds that kernels are compared with, measured on the same threads in the same run.

use crate::ctx::Ctx;
use crate::mat::Disjoint;
use crate::simd::tile::{MR, NR};
use crate::simd::{Elements, Simd};
use crate::simd_fn;

/// # Safety
/// This CPU has `V`'s instructions.
#[inline(always)]
unsafe fn fma_chain_body<V: Simd>(rounds: usize) -> f32 {
    // SAFETY: by this function's contract.
    unsafe {
        match V::ISA.tiles() {
            1 => chains::<V::Line, 1>(rounds),
            _ => chains::<V::Line, 2>(rounds),
        }
    }
}
simd_fn!(fn fma_chain = fma_chain_body(rounds: usize) -> f32);

/// The sums of `W` register tiles, which are twelve registers and so enough: two pipes of latency four need eight.
///
/// # Safety
/// As [`Elements`].
#[inline(always)]
unsafe fn chains<R: Elements, const W: usize>(rounds: usize) -> f32 {
    // SAFETY: by this function's contract.
    unsafe {
        let (a, b) = (R::splat(0.999), R::splat(1e-6));
        let mut tiles = [[R::zero(); MR]; W];
        for _ in 0..rounds {
            for chain in tiles.as_flattened_mut() {
                *chain = chain.fma(a, b);
            }
        }
        let mut sums = [0.0; NR];
        for chain in tiles.as_flattened() {
            chain.add(R::load(sums.as_ptr())).store(sums.as_mut_ptr());
        }
        sums.iter().sum()
    }
}

/// FLOPs done by one call of [`fma_peak`] with these arguments.
pub fn fma_peak_flops(cx: &Ctx, rounds: usize) -> f64 {
    (cx.pool.threads() * rounds * cx.isa.tiles() * MR * NR * 2) as f64
}

/// Keeps every thread busy with FMAs only; the caller times it.
pub fn fma_peak(cx: &Ctx, rounds: usize) -> f32 {
    let threads = cx.pool.threads();
    let mut sinks = vec![0.0f32; threads];
    let out = Disjoint::new(&mut sinks);
    cx.pool.run(threads, |task, _| {
        // SAFETY: `isa` is this CPU's; each task writes its own element.
        unsafe { out.range(task, 1)[0] = fma_chain(cx.isa, rounds) };
    });
    sinks.iter().sum()
}

/// # Safety
/// This CPU has `V`'s instructions; `data` holds `len` floats.
#[inline(always)]
unsafe fn read_body<V: Simd>(data: *const f32, len: usize) -> f32 {
    // SAFETY: by this function's contract.
    unsafe {
        let mut sums = [V::zero(); 4];
        for i in (0..len / 32 * 32).step_by(32) {
            for (lane, sum) in sums.iter_mut().enumerate() {
                *sum = sum.add(V::load(data.add(i + 8 * lane)));
            }
        }
        sums[0].add(sums[1]).add(sums[2].add(sums[3])).sum()
    }
}
simd_fn!(fn read_sum = read_body(data: *const f32, len: usize) -> f32);

/// Reads all of `data` once over the threads; the caller times it for GB/s.
pub fn read_bandwidth(cx: &Ctx, data: &[f32]) -> f32 {
    let parts = 16 * cx.pool.threads();
    let mut sinks = vec![0.0f32; parts];
    let out = Disjoint::new(&mut sinks);
    cx.pool.run(parts, |task, _| {
        let (from, to) = (data.len() * task / parts, data.len() * (task + 1) / parts);
        // SAFETY: the range is inside `data`; each task writes its own element.
        unsafe { out.range(task, 1)[0] = read_sum(cx.isa, data.as_ptr().add(from), to - from) };
    });
    sinks.iter().sum()
}
