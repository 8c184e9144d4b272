//! The inner loop of the register tile in assembly: with the shortest encodings and nothing besides what must be there. If the
//! other hardware thread of a core is busy, each gets half of the issue slots, so every instruction besides the multiplications
//! costs: prefetching the operands lost 10 % there and gained nothing on an otherwise idle core.

use super::tile::Sums;
use super::x86::{Avx2, Avx512, Set};
use super::x86_line::Zmm;
use crate::isa::Isa;
use std::arch::asm;

/// A line is two registers: its sums take twelve, a row of the right operand two, an element of the left one one.
pub struct Narrow;
/// A line is one register. One tile has six chains of sums, which are too few to keep the multipliers busy, so there are
/// two side by side.
pub struct Wide;

// SAFETY: the trait's contract.
unsafe impl Set for Narrow {
    const ISA: Isa = Isa::Avx2;
    type Line = [Avx2; 2];
    #[inline(always)]
    unsafe fn line(low: Avx2, high: Avx2) -> [Avx2; 2] {
        [low, high]
    }
    #[inline(always)]
    unsafe fn halves(line: [Avx2; 2]) -> [Avx2; 2] {
        line
    }
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn unrolled_steps<const ROW: usize, const STEP: usize, const W: usize>(
        sums: &mut [Sums<Self::Line>; W],
        counts: [usize; 2],
        panel: usize,
        a: *const f32,
        b: [*const f32; W],
    ) {
        for (sums, b) in sums.iter_mut().zip(b) {
            // SAFETY: by this function's contract.
            unsafe { rows_of_two_ymm::<ROW, STEP>(sums, counts, panel, a, b) }
        }
    }
}

// SAFETY: the trait's contract.
unsafe impl Set for Wide {
    const ISA: Isa = Isa::Avx512;
    type Line = Zmm;
    #[inline(always)]
    unsafe fn line(low: Avx512, high: Avx512) -> Zmm {
        // SAFETY: by the trait's contract.
        unsafe { Zmm::of_halves(low, high) }
    }
    #[inline(always)]
    unsafe fn halves(line: Zmm) -> [Avx512; 2] {
        // SAFETY: by the trait's contract.
        unsafe { line.halves() }
    }
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn unrolled_steps<const ROW: usize, const STEP: usize, const W: usize>(
        sums: &mut [Sums<Self::Line>; W],
        counts: [usize; 2],
        panel: usize,
        a: *const f32,
        b: [*const f32; W],
    ) {
        // SAFETY: by this function's contract.
        unsafe {
            match (&mut sums[..], &b[..]) {
                ([sums], [b]) => rows_of_one_zmm::<ROW, STEP>(sums, counts, panel, a, *b),
                ([left, right], [b, next]) => {
                    rows_of_two_zmm::<ROW, STEP>([left, right], counts, panel, a, [*b, *next]);
                }
                _ => unreachable!("one tile or two"),
            }
        }
    }
}

/// `panels` times `rounds` times four steps of a tile: twenty instructions per step.
///
/// # Safety
/// The operands hold the steps; panels of A are `panel` floats apart.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn rows_of_two_ymm<const ROW: usize, const STEP: usize>(
    sums: &mut Sums<[Avx2; 2]>,
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
        asm!(
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

/// The same with rows of one register: seven instructions per step, six of which wait for those of the step before.
///
/// # Safety
/// As [`rows_of_two_ymm`].
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn rows_of_one_zmm<const ROW: usize, const STEP: usize>(
    sums: &mut Sums<Zmm>,
    [panels, rounds]: [usize; 2],
    panel: usize,
    a: *const f32,
    b: *const f32,
) {
    if panels * rounds == 0 {
        return;
    }
    let [c0, c1, c2, c3, c4, c5] = sums;
    // SAFETY: as above.
    unsafe {
        asm!(
            "3:",
            "mov r8, rcx",
            "mov r9, {rounds}",
            ".p2align 4",
            "2:",
            ".irp k, 0, 1, 2, 3",
            "vmovups zmm6, zmmword ptr [rdx + \\k * 64]",
            ".irp r, 0, 1, 2, 3, 4, 5",
            "vfmadd231ps zmm\\r, zmm6, dword ptr [rcx + \\r * {row} + \\k * {step}]{{1to16}}",
            ".endr",
            ".endr",
            "add rcx, 4 * {step}",
            "add rdx, 256",
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
            inout("rdx") b => _,
            out("r8") _, out("r9") _,
            inout("zmm0") c0.0, inout("zmm1") c1.0, inout("zmm2") c2.0,
            inout("zmm3") c3.0, inout("zmm4") c4.0, inout("zmm5") c5.0,
            out("zmm6") _,
            options(nostack, readonly),
        );
    }
}

/// The same for two tiles side by side. Eight loads for twelve multiplications: with two tiles on top of each other it would be
/// thirteen, more than the load ports sustain.
///
/// # Safety
/// As [`rows_of_two_ymm`].
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn rows_of_two_zmm<const ROW: usize, const STEP: usize>(
    [left, right]: [&mut Sums<Zmm>; 2],
    [panels, rounds]: [usize; 2],
    panel: usize,
    a: *const f32,
    [b, next]: [*const f32; 2],
) {
    if panels * rounds == 0 {
        return;
    }
    let [c0, c1, c2, c3, c4, c5] = left;
    let [d0, d1, d2, d3, d4, d5] = right;
    // SAFETY: as above.
    unsafe {
        asm!(
            "3:",
            "mov r8, rcx",
            "mov r9, {rounds}",
            ".p2align 4",
            "2:",
            ".irp k, 0, 1, 2, 3",
            "vmovups zmm6, zmmword ptr [rdx + \\k * 64]",
            "vmovups zmm7, zmmword ptr [rsi + \\k * 64]",
            ".irp r, 0, 1, 2, 3, 4, 5",
            "vbroadcastss zmm8, dword ptr [rcx + \\r * {row} + \\k * {step}]",
            "vfmadd231ps zmm\\r, zmm8, zmm6",
            "vfmadd231ps zmm1\\r, zmm8, zmm7",
            ".endr",
            ".endr",
            "add rcx, 4 * {step}",
            "add rdx, 256",
            "add rsi, 256",
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
            inout("rdx") b => _,
            inout("rsi") next => _,
            out("r8") _, out("r9") _,
            inout("zmm0") c0.0, inout("zmm1") c1.0, inout("zmm2") c2.0,
            inout("zmm3") c3.0, inout("zmm4") c4.0, inout("zmm5") c5.0,
            inout("zmm10") d0.0, inout("zmm11") d1.0, inout("zmm12") d2.0,
            inout("zmm13") d3.0, inout("zmm14") d4.0, inout("zmm15") d5.0,
            out("zmm6") _, out("zmm7") _, out("zmm8") _,
            options(nostack, readonly),
        );
    }
}
