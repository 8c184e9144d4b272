//! The register tile of all products: six rows of sixteen sums in twelve registers, two more for a row of the
//! right operand and one for an element of the left one.

use super::{LANES, Simd};

/// Rows of the tile.
pub const MR: usize = 6;
/// Columns of the tile.
pub const NR: usize = 2 * LANES;
/// Steps per iteration of the unrolled loop.
pub const UNROLL: usize = 4;

/// The sums of a tile, `WIDE` registers per row.
pub type Sums<V, const WIDE: usize = 2> = [[V; WIDE]; MR];

/// `sums += A[6, depth] B[depth, 16]`: A(r, k) = `a[r * ROW + k * STEP]`, rows of B sixteen floats apart.
///
/// # Safety
/// Called from a SIMD entry point; the operands hold `depth` steps.
#[inline(always)]
pub unsafe fn steps<V: Simd, const ROW: usize, const STEP: usize>(
    sums: &mut Sums<V>,
    depth: usize,
    a: *const f32,
    b: *const f32,
) {
    // SAFETY: by this function's contract.
    unsafe {
        V::unrolled_steps::<ROW, STEP>(sums, [1, depth / UNROLL], 0, a, b);
        for k in depth / UNROLL * UNROLL..depth {
            step::<V, 2, ROW>(sums, a.add(k * STEP), b.add(k * NR));
        }
    }
}

/// The same with A in panels of sixteen steps, `panel` floats apart: A(r, k) = `a[k / 16 * panel + r * 16 + k % 16]`.
///
/// # Safety
/// As [`steps`].
#[inline(always)]
pub unsafe fn panel_steps<V: Simd>(sums: &mut Sums<V>, depth: usize, panel: usize, a: *const f32, b: *const f32) {
    // SAFETY: by this function's contract.
    unsafe {
        let whole = depth / NR;
        V::unrolled_steps::<NR, 1>(sums, [whole, NR / UNROLL], panel, a, b);
        steps::<V, NR, 1>(
            sums,
            depth % NR,
            a.wrapping_add(whole * panel),
            b.wrapping_add(whole * NR * NR),
        );
    }
}

/// One step of the depth.
///
/// # Safety
/// As [`steps`].
#[inline(always)]
pub unsafe fn step<V: Simd, const WIDE: usize, const ROW: usize>(
    sums: &mut Sums<V, WIDE>,
    a: *const f32,
    b: *const f32,
) {
    // SAFETY: by this function's contract.
    unsafe {
        let mut right = [V::zero(); WIDE];
        for (w, lanes) in right.iter_mut().enumerate() {
            *lanes = V::load(b.add(w * LANES));
        }
        for (r, row) in sums.iter_mut().enumerate() {
            let x = V::splat(*a.add(r * ROW));
            for (sum, b) in row.iter_mut().zip(right) {
                *sum = x.fma(b, *sum);
            }
        }
    }
}

/// `panels` times `rounds` times four steps, in assembly: twenty instructions per step, with the shortest encodings. If the
/// other hardware thread of a core is busy, each gets half of the issue slots, so every instruction besides the multiplications
/// costs: prefetching the operands lost 10 % there and gained nothing on an otherwise idle core.
///
/// # Safety
/// The operands hold the steps; panels of A are `panel` floats apart.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn unrolled_steps_avx2<const ROW: usize, const STEP: usize>(
    sums: &mut Sums<super::Avx2>,
    [panels, rounds]: [usize; 2],
    panel: usize,
    a: *const f32,
    b: *const f32,
) {
    if panels * rounds == 0 {
        return;
    }
    let [[c0, d0], [c1, d1], [c2, d2], [c3, d3], [c4, d4], [c5, d5]] = sums;
    // SAFETY: an iteration reads four steps of both operands, which the caller promises to be there.
    unsafe {
        std::arch::asm!(
            "3:",
            "mov r8, rcx",
            "mov r9, {rounds}",
            ".p2align 4",
            "2:",
            ".irp k, 0, 1, 2, 3",
            "vmovups ymm6, ymmword ptr [rdx + \\k * 64 - 128]",
            "vmovups ymm7, ymmword ptr [rdx + \\k * 64 - 96]",
            ".irp r, 0, 1, 2, 3, 4, 5",
            "vbroadcastss ymm8, dword ptr [rcx + \\r * {row} + \\k * {step}]",
            "vfmadd231ps ymm\\r, ymm8, ymm6",
            "vfmadd231ps ymm1\\r, ymm8, ymm7",
            ".endr",
            ".endr",
            "add rcx, 4 * {step}",
            "sub rdx, -256",
            "dec r9",
            "jnz 2b",
            "lea rcx, [r8 + {panel}]",
            "dec rax",
            "jnz 3b",
            row = const ROW * size_of::<f32>(),
            step = const STEP * size_of::<f32>(),
            panel = in(reg) panel * size_of::<f32>(),
            rounds = in(reg) rounds,
            inout("rax") panels => _,
            inout("rcx") a => _,
            // In the middle of an iteration's floats, so that offsets fit in one byte.
            inout("rdx") b.byte_add(128) => _,
            out("r8") _, out("r9") _,
            inout("ymm0") c0.0, inout("ymm1") c1.0, inout("ymm2") c2.0,
            inout("ymm3") c3.0, inout("ymm4") c4.0, inout("ymm5") c5.0,
            inout("ymm10") d0.0, inout("ymm11") d1.0, inout("ymm12") d2.0,
            inout("ymm13") d3.0, inout("ymm14") d4.0, inout("ymm15") d5.0,
            out("ymm6") _, out("ymm7") _, out("ymm8") _,
            options(nostack, readonly),
        );
    }
}
