//! Lanes against scalars, on every instruction set of this machine.

use super::*;

#[inline(always)]
unsafe fn exp_body<V: Simd>(x: *const f32, y: *mut f32) {
    unsafe { V::load(x).exp().store(y) }
}
simd_fn!(fn exp = exp_body(x: *const f32, y: *mut f32));

#[inline(always)]
unsafe fn halves_body<V: Simd>(x: *const f32, h: *mut u16, y: *mut f32) {
    unsafe {
        V::load(x).store_half(h);
        V::load_half(h).store(y);
    }
}
simd_fn!(fn halves = halves_body(x: *const f32, h: *mut u16, y: *mut f32));

#[inline(always)]
unsafe fn transpose_body<V: Simd>(x: *const f32, y: *mut f32) {
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
    for isa in [Isa::Portable, Isa::detect()] {
        let mut y = [0.0; 64];
        // SAFETY: 64 elements each; `isa` is one this CPU has.
        unsafe { transpose(isa, x.as_ptr(), y.as_mut_ptr()) };
        assert!((0..64).all(|at| y[at] == x[at % 8 * 8 + at / 8]), "{isa:?} {y:?}");
    }
}

#[inline(always)]
unsafe fn sums_body<V: Simd>(x: *const f32, y: *mut f32, one: *mut f32) {
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
    for isa in [Isa::Portable, Isa::detect()] {
        let x: Vec<f32> = (0..64)
            .map(|i| (i as f32 * 1.37).sin() * (i as f32).exp2().min(1e6))
            .collect();
        let (mut y, mut one) = ([0.0; 8], [0.0; 8]);
        // SAFETY: 64 and 8 elements; `isa` is one this CPU has.
        unsafe { sums(isa, x.as_ptr(), y.as_mut_ptr(), one.as_mut_ptr()) };
        assert_eq!(y.map(f32::to_bits), one.map(f32::to_bits), "{isa:?}");
    }
}

#[test]
fn exp_is_accurate_on_every_isa() {
    for isa in [Isa::Portable, Isa::detect()] {
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
