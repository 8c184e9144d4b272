//! Lanes against scalars, on every instruction set of this machine.

use super::elements::EXP2;
use super::*;
use crate::half::{float_to_half, half_to_float};
use crate::isa::available;

mod register_tile;

/// # Safety
/// This CPU has `V`'s instructions; `x` and `y` hold eight floats.
#[inline(always)]
unsafe fn exp_body<V: Simd>(x: *const f32, y: *mut f32) {
    // SAFETY: by this function's contract.
    unsafe { V::load(x).exp().store(y) }
}
simd_fn!(fn exp = exp_body(x: *const f32, y: *mut f32));

/// # Safety
/// This CPU has `V`'s instructions; `x`, `h` and `y` hold eight numbers.
#[inline(always)]
unsafe fn halves_body<V: Simd>(x: *const f32, h: *mut u16, y: *mut f32) {
    // SAFETY: by this function's contract.
    unsafe {
        V::load(x).store_half(h);
        V::load_half(h).store(y);
    }
}
simd_fn!(fn halves = halves_body(x: *const f32, h: *mut u16, y: *mut f32));

/// # Safety
/// This CPU has `V`'s instructions; `x` and `y` hold 64 floats.
#[inline(always)]
unsafe fn transpose_body<V: Simd>(x: *const f32, y: *mut f32) {
    // SAFETY: by this function's contract.
    unsafe {
        let columns = V::transpose(std::array::from_fn(|i| V::load(x.add(i * LANES))));
        for (j, column) in columns.into_iter().enumerate() {
            column.where_positive(V::splat(1.0)).store(y.add(j * LANES));
        }
    }
}
simd_fn!(fn transpose = transpose_body(x: *const f32, y: *mut f32));

#[test]
fn rows_become_columns() {
    let x: [f32; 64] = std::array::from_fn(|i| i as f32);
    for isa in available() {
        let mut y = [0.0; 64];
        // SAFETY: 64 elements each; `isa` is one this CPU has.
        unsafe { transpose(isa, x.as_ptr(), y.as_mut_ptr()) };
        assert!((0..64).all(|at| y[at] == x[at % 8 * 8 + at / 8]), "{isa:?} {y:?}");
    }
}

/// # Safety
/// This CPU has `V`'s instructions; `x` holds 64 floats, `y` and `one` eight.
#[inline(always)]
unsafe fn sums_body<V: Simd>(x: *const f32, y: *mut f32, one: *mut f32) {
    // SAFETY: by this function's contract.
    unsafe {
        let v: [V; LANES] = std::array::from_fn(|i| V::load(x.add(i * LANES)));
        V::sums(v).store(y);
        for (i, lanes) in v.iter().enumerate() {
            *one.add(i) = lanes.sum();
        }
    }
}
simd_fn!(fn sums = sums_body(x: *const f32, y: *mut f32, one: *mut f32));

#[test]
fn eight_sums_at_once_equal_eight_sums() {
    for isa in available() {
        let x: Vec<f32> = (0..64)
            .map(|i| (i as f32 * 1.37).sin() * (i as f32).exp2().min(1e6))
            .collect();
        let (mut y, mut one) = ([0.0; 8], [0.0; 8]);
        // SAFETY: 64 and 8 elements; `isa` is one this CPU has.
        unsafe { sums(isa, x.as_ptr(), y.as_mut_ptr(), one.as_mut_ptr()) };
        assert_eq!(y.map(f32::to_bits), one.map(f32::to_bits), "{isa:?}");
    }
}

/// # Safety
/// This CPU has `V`'s instructions; `x` and `y` hold eight floats.
#[inline(always)]
unsafe fn log_body<V: Simd>(x: *const f32, y: *mut f32) {
    // SAFETY: by this function's contract.
    unsafe {
        let [log] = V::log2([V::load(x)]);
        log.store(y)
    }
}
simd_fn!(fn log2 = log_body(x: *const f32, y: *mut f32));

#[test]
fn log2_is_accurate_on_every_isa() {
    for isa in available() {
        let mut x = f32::MIN_POSITIVE;
        while x < 1e38 {
            let xs: [f32; 8] = std::array::from_fn(|i| x * (1.0 + i as f32 * 0.013));
            let mut ys = [0.0; 8];
            // SAFETY: eight elements each; `isa` is one this CPU has.
            unsafe { log2(isa, xs.as_ptr(), ys.as_mut_ptr()) };
            for (x, y) in xs.iter().zip(ys) {
                let want = f64::from(*x).log2();
                let tolerance = 2e-7 * (1.0 + want.abs());
                assert!(
                    (f64::from(y) - want).abs() <= tolerance,
                    "{isa:?} log2({x}) = {y}, want {want}"
                );
            }
            x *= 1.09;
        }
        let (ones, mut ys) = ([1.0; 8], [1.0; 8]);
        // SAFETY: as above.
        unsafe { log2(isa, ones.as_ptr(), ys.as_mut_ptr()) };
        assert_eq!(ys, [0.0; 8], "{isa:?}");
    }
}

/// # Safety
/// This CPU has `V`'s instructions; `x` and `y` hold eight numbers.
#[inline(always)]
unsafe fn gaps_body<V: Simd>(now: i64, x: *const i64, y: *mut f32) {
    // SAFETY: by this function's contract.
    unsafe { V::gaps(now, x).store(y) }
}
simd_fn!(fn gaps = gaps_body(now: i64, x: *const i64, y: *mut f32));

/// # Safety
/// This CPU has `V`'s instructions; `x` and `y` hold eight numbers.
#[inline(always)]
unsafe fn near_gaps_body<V: Simd>(now: i32, x: *const i32, y: *mut f32) {
    // SAFETY: by this function's contract.
    unsafe { V::near_gaps(now, x).store(y) }
}
simd_fn!(fn near_gaps = near_gaps_body(now: i32, x: *const i32, y: *mut f32));

#[test]
fn near_gaps_equal_gaps() {
    let times = [0, 1, 16_777_217, 16_777_219, i32::MAX, i32::MAX - 1, 123_456_789, 5];
    for isa in available() {
        for now in [0, 1, 33_554_435, i32::MAX] {
            let (mut near, mut far) = ([0.0; 8], [0.0; 8]);
            // SAFETY: eight elements each; `isa` is one this CPU has.
            unsafe {
                near_gaps(isa, now, times.as_ptr(), near.as_mut_ptr());
                gaps(isa, now.into(), times.map(i64::from).as_ptr(), far.as_mut_ptr());
            }
            assert_eq!(near, far, "{isa:?} {now}");
        }
    }
}

#[test]
fn gaps_are_the_nearest_floats() {
    let sizes = [
        0,
        1,
        16_777_217,
        (1 << 31) - 1,
        1 << 32,
        (1 << 52) + 3,
        1 << 53,
        i64::MAX / 2,
    ];
    for isa in available() {
        for now in [0, 1_700_000_000_123, -5, 1 << 53] {
            for sign in [1, -1] {
                let times = sizes.map(|size| now + sign * size);
                let mut ys = [0.0; 8];
                // SAFETY: eight elements each; `isa` is one this CPU has.
                unsafe { gaps(isa, now, times.as_ptr(), ys.as_mut_ptr()) };
                assert_eq!(ys, sizes.map(|size| size as f64 as f32), "{isa:?} {now} {sign}");
            }
        }
    }
}

#[test]
fn exp_is_accurate_on_every_isa() {
    for isa in available() {
        let mut x = -80.0f32;
        while x < 80.0 {
            let xs: [f32; 8] = std::array::from_fn(|i| x + i as f32 * 0.013);
            let mut ys = [0.0; 8];
            // SAFETY: eight elements each; `isa` is one this CPU has.
            unsafe { exp(isa, xs.as_ptr(), ys.as_mut_ptr()) };
            for (x, y) in xs.iter().zip(ys) {
                let want = f64::from(*x).exp();
                // The argument's own rounding (x * log2 e) grows with |x|.
                let tolerance = 2e-7 * (1.0 + f64::from(x.abs()));
                assert!(
                    (f64::from(y) / want - 1.0).abs() < tolerance,
                    "{isa:?} exp({x}) = {y}, want {want}"
                );
            }
            x += 0.1;
        }
    }
}

#[test]
fn halves_agree_with_the_hardware_for_every_pattern() {
    for bits in 0..=u16::MAX {
        let x = half_to_float(bits);
        let y = float_to_half(x);
        assert!(y == bits || x.is_nan(), "{bits:#x} -> {x} -> {y:#x}");
    }
    let mut state = 1u32;
    for _ in 0..20_000 {
        let xs: [f32; 8] = std::array::from_fn(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f32::from_bits(state)
        });
        let run = |isa| {
            let (mut h, mut y) = ([0u16; 8], [0f32; 8]);
            // SAFETY: eight elements each; `isa` is one this CPU has.
            unsafe { halves(isa, xs.as_ptr(), h.as_mut_ptr(), y.as_mut_ptr()) };
            (h, y)
        };
        let ((h0, y0), (h1, y1)) = (run(Isa::Portable), run(Isa::detect()));
        for i in 0..8 {
            assert!(
                xs[i].is_nan() || (h0[i], y0[i].to_bits()) == (h1[i], y1[i].to_bits()),
                "{}",
                xs[i]
            );
        }
    }
}

/// `x * y + sum` as the instruction set rounds it: once, or after the product too.
fn fma(isa: Isa, x: f32, y: f32, sum: f32) -> f32 {
    match isa {
        Isa::Portable => sum + x * y,
        _ => x.mul_add(y, sum),
    }
}

#[test]
fn exp_is_its_polynomial_to_the_bit() {
    let exponents: Vec<f32> = (-4000..4000).map(|i| i as f32 * 0.0231).chain([200.0; 8]).collect();
    for isa in available() {
        for x in exponents.chunks_exact(LANES) {
            let mut y = [0.0; LANES];
            // SAFETY: eight lanes each; `isa` is one this CPU has.
            unsafe { exp(isa, x.as_ptr(), y.as_mut_ptr()) };
            for (x, got) in x.iter().zip(y) {
                let t = (x * std::f32::consts::LOG2_E).clamp(-126.0, 126.0);
                let f = t - t.round_ties_even();
                let p = EXP2.iter().rev().copied().reduce(|p, c| fma(isa, p, f, c)).unwrap();
                let expected = p * t.round_ties_even().exp2();
                assert_eq!(
                    got.to_bits(),
                    expected.to_bits(),
                    "{isa:?}: e^{x} is {got}, not {expected}"
                );
            }
        }
    }
}

/// SiLU of a line and of each half by its definition, and the derivatives of the line and of each half.
///
/// # Safety
/// This CPU has `V`'s instructions; `x` holds sixteen floats, and `out` may be written.
#[inline(always)]
unsafe fn silus_body<V: Simd>(x: *const f32, out: *mut [[f32; LINE]; 4]) {
    // SAFETY: by this function's contract.
    unsafe {
        let [silu, plain, slope, plain_slope] = &mut *out;
        let line = V::Line::load(x);
        line.silu().store(silu.as_mut_ptr());
        let [slopes] = Elements::silu_grads([line]);
        slopes.store(slope.as_mut_ptr());
        for at in [0, LANES] {
            let x = V::load(x.add(at));
            let s = V::splat(1.0).div(V::splat(1.0).add(V::zero().sub(x).exp()));
            x.div(V::splat(1.0).add(V::zero().sub(x).exp()))
                .store(plain.as_mut_ptr().add(at));
            s.mul(x)
                .fma(V::splat(1.0).sub(s), s)
                .store(plain_slope.as_mut_ptr().add(at));
        }
    }
}
simd_fn!(fn silus = silus_body(x: *const f32, out: *mut [[f32; LINE]; 4]));

#[test]
fn silu_and_its_derivative_are_their_definitions_to_the_bit() {
    let specials = [0.0, -0.0, 1e-40, -1e-40, 90.0, -90.0, f32::INFINITY, f32::NEG_INFINITY];
    let many = (0..100_000).map(|i| (i as f32 * 0.37).sin() * (i % 200) as f32);
    let x: Vec<f32> = specials.into_iter().chain(many).collect();
    for isa in available() {
        for x in x.chunks_exact(LINE) {
            let mut out = [[0.0; LINE]; 4];
            // SAFETY: sixteen lanes each; `isa` is one this CPU has.
            unsafe { silus(isa, x.as_ptr(), &mut out) };
            let [silu, plain, slope, plain_slope] = out.map(|lanes| lanes.map(f32::to_bits));
            assert_eq!(silu, plain, "{isa:?} at {x:?}");
            assert_eq!(slope, plain_slope, "{isa:?}, derivative at {x:?}");
        }
    }
}

/// What lines do element by element, and the same on their halves; the first `n` elements of each, and all.
///
/// # Safety
/// This CPU has `V`'s instructions; `x` holds sixteen positive numbers, `n` is at most sixteen.
#[inline(always)]
unsafe fn lines_body<V: Simd>(x: *const f32, n: usize, out: *mut [[f32; LINE]; 2 * RESULTS]) {
    // SAFETY: by this function's contract.
    unsafe {
        let (of_line, of_halves) = (*out).split_at_mut(RESULTS);
        let line = V::Line::load_part(x, n);
        for (result, to) in results(line).into_iter().zip(&mut *of_line) {
            result.store_part(to.as_mut_ptr(), n);
        }
        let halves = [
            V::load_upto(x, n),
            V::load_part(x.wrapping_add(LANES), n.saturating_sub(LANES)),
        ];
        for (half, x) in halves.into_iter().enumerate() {
            for (result, to) in results(x).into_iter().zip(&mut *of_halves) {
                let left = n.saturating_sub(half * LANES);
                result.store_upto(to.as_mut_ptr().wrapping_add(half * LANES), left);
            }
        }
        let [low, high] = V::halves(V::line(halves[0], halves[1]));
        low.sub(halves[0]).store_upto(of_line[RESULTS - 1].as_mut_ptr(), n);
        high.sub(halves[1])
            .store_part(of_line[RESULTS - 1].as_mut_ptr().add(LANES), n.saturating_sub(LANES));
    }
}
simd_fn!(fn lines = lines_body(x: *const f32, n: usize, out: *mut [[f32; LINE]; 2 * RESULTS]));

const RESULTS: usize = 12;

/// # Safety
/// As [`Elements`]; `x` is positive.
#[inline(always)]
unsafe fn results<E: Elements>(x: E) -> [E; RESULTS] {
    // SAFETY: by this function's contract.
    unsafe {
        let y = E::splat(0.75);
        let ([log], [power]) = (E::log2([x.max(E::splat(0.1))]), E::exp2_clamped([x]));
        [
            x.add(y),
            x.sub(y),
            x.mul(y),
            x.div(y),
            x.max(y),
            x.min(y),
            x.fma(y, x),
            x.where_positive(x.sub(y).max(E::zero())),
            E::from_whole(x.nearest()),
            log,
            power,
            E::zero(),
        ]
    }
}

#[test]
fn lines_are_their_halves_to_the_bit() {
    let x: [f32; LINE] = std::array::from_fn(|i| 0.37 * i as f32 + 0.01);
    for isa in available() {
        for n in 0..=LINE {
            // The result is not written beyond `n`, the operand not read beyond it.
            let operand = x[..n].to_vec();
            let mut out = [[-7.0; LINE]; 2 * RESULTS];
            // SAFETY: `n` elements are read; `isa` is one this CPU has.
            unsafe { lines(isa, operand.as_ptr(), n, &mut out) };
            let (of_line, of_halves) = out.split_at(RESULTS);
            for (what, (line, halves)) in of_line.iter().zip(of_halves).enumerate() {
                let bits = |x: &[f32; LINE]| x.map(f32::to_bits);
                assert_eq!(bits(line), bits(halves), "{isa:?}, result {what} of {n} elements");
                assert!(line[n..].iter().all(|x| *x == -7.0), "{isa:?}, result {what}: {line:?}");
            }
        }
    }
}
