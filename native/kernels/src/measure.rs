//! Reference speeds that kernels are compared with, measured on the same threads in the same run.

use crate::ctx::Ctx;
use crate::mat::Disjoint;
use crate::simd::Simd;
use crate::simd_fn;

/// Twelve independent accumulators: two FMA pipes of latency four need eight.
const CHAINS: usize = 12;

/// # Safety
/// This CPU has `V`'s instructions.
#[inline(always)]
unsafe fn fma_chain_body<V: Simd>(rounds: usize) -> f32 {
    // SAFETY: by this function's contract.
    unsafe {
        let (a, b) = (V::splat(0.999), V::splat(1e-6));
        let mut c: [V; CHAINS] = std::array::from_fn(|i| V::splat(i as f32 + 1.0));
        for _ in 0..rounds {
            for chain in &mut c {
                *chain = chain.fma(a, b);
            }
        }
        c.iter().skip(1).fold(c[0], |sum, chain| sum.add(*chain)).sum()
    }
}
simd_fn!(fn fma_chain = fma_chain_body(rounds: usize) -> f32);

/// FLOPs done by one call of [`fma_peak`] with these arguments.
pub fn fma_peak_flops(cx: &Ctx, rounds: usize) -> f64 {
    (cx.pool.threads() * rounds * CHAINS * 16) as f64
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
