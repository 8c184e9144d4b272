//! The norms against their oracle, the oracle against finite differences.

use super::naive::*;
use super::{Norm, l2_norm, norm};
use crate::fault::FaultKind;
use crate::testing::*;

const EPS: f64 = 1e-6;
/// Sums of up to a few hundred floats, divided by a deviation of about one half.
const TOLERANCE: f64 = 2e-5;

fn rows(values: &[f64], d: usize, f: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
    values.chunks(d).flat_map(f).collect()
}

#[test]
fn norm_matches_its_oracle_at_every_width() {
    let contexts = contexts();
    for t in [0, 1, 63, 64, 65, 130] {
        for d in [1, 7, 8, 15, 16, 17, 31, 32, 33, 50, 100, 257] {
            let (x, dy, before) = (numbers(1, t * d), numbers(2, t * d), numbers(3, t * d));
            let (gain, shift) = (numbers(4, d), numbers(5, d));
            for kind in [Norm::Layer, Norm::Rms] {
                let xhat = rows(&x, d, |x| norm_row(kind, EPS, x).0);
                let y: Vec<f64> = xhat
                    .iter()
                    .enumerate()
                    .map(|(i, x)| x * gain[i % d] + shift[i % d])
                    .collect();
                let g: Vec<f64> = dy.iter().enumerate().map(|(i, g)| g * gain[i % d]).collect();
                let dx: Vec<f64> = (0..t)
                    .flat_map(|i| norm_row_grad(kind, EPS, &x[i * d..][..d], &g[i * d..][..d]))
                    .zip(&before)
                    .map(|(g, before)| g + before)
                    .collect();
                let column = |f: &dyn Fn(usize) -> f64| -> Vec<f64> {
                    (0..d).map(|j| (0..t).map(|i| f(i * d + j)).sum()).collect()
                };
                let (dgain, dshift) = (column(&|at| dy[at] * xhat[at]), column(&|at| dy[at]));
                let (gain32, shift32): (Vec<f32>, Vec<f32>) =
                    gain.iter().zip(&shift).map(|(g, s)| (*g as f32, *s as f32)).unzip();
                let outputs = on_every_context(&contexts, |cx| {
                    let (xs, dys) = (Padded::from(&x, t, d), Padded::from(&dy, t, d));
                    let (mut ys, mut stats) = (Padded::unset(t, d), Padded::unset(t, 2));
                    let (mut dxs, mut dgains, mut dshifts) =
                        (Padded::from(&before, t, d), Padded::unset(1, d), Padded::unset(1, d));
                    let forward = norm::Forward {
                        x: xs.mat(),
                        norm: kind,
                        eps: EPS as f32,
                        gain: Some(&gain32),
                        shift: Some(&shift32),
                        y: ys.mat_mut(),
                        stats: stats.mat_mut(),
                    };
                    norm::forward(cx, forward).unwrap();
                    let backward = norm::Backward {
                        x: xs.mat(),
                        norm: kind,
                        gain: Some(&gain32),
                        stats: stats.mat(),
                        dy: dys.mat(),
                        dx: Some(dxs.accumulate()),
                        dgain: Some(dgains.overwrite()),
                        dshift: Some(dshifts.overwrite()),
                    };
                    norm::backward(cx, backward).unwrap();
                    vec![ys, dxs, dgains, dshifts]
                });
                for run in outputs {
                    // A layer norm of width 1 is all rounding: 0 / sqrt(eps).
                    let tolerance = if d < 8 { 1e-2 } else { TOLERANCE };
                    for (got, (want, name)) in
                        run.iter()
                            .zip([(&y, "y"), (&dx, "dx"), (&dgain, "dgain"), (&dshift, "dshift")])
                    {
                        got.assert_close(want, tolerance, &format!("{kind:?} t={t} d={d} {name}"));
                    }
                }
            }
        }
    }
}

#[test]
fn l2_norm_matches_its_oracle_also_for_short_rows() {
    let contexts = contexts();
    for t in [0, 1, 65] {
        for d in [1, 8, 17, 50, 100] {
            let mut x = numbers(1, t * d);
            x.iter_mut().take(d).for_each(|x| *x *= 1e-9);
            let dy = numbers(2, t * d);
            let y = rows(&x, d, |x| l2_norm_row(EPS, x));
            let dx: Vec<f64> = (0..t)
                .flat_map(|i| l2_norm_row_grad(EPS, &x[i * d..][..d], &dy[i * d..][..d]))
                .collect();
            let outputs = on_every_context(&contexts, |cx| {
                let (xs, dys) = (Padded::from(&x, t, d), Padded::from(&dy, t, d));
                let (mut ys, mut dxs) = (Padded::unset(t, d), Padded::unset(t, d));
                l2_norm::forward(
                    cx,
                    l2_norm::Forward {
                        x: xs.mat(),
                        eps: EPS as f32,
                        y: ys.mat_mut(),
                    },
                )
                .unwrap();
                let backward = l2_norm::Backward {
                    x: xs.mat(),
                    eps: EPS as f32,
                    dy: dys.mat(),
                    dx: dxs.overwrite(),
                };
                l2_norm::backward(cx, backward).unwrap();
                vec![ys, dxs]
            });
            for run in outputs {
                run[0].assert_close(&y, 1e-6, "l2_norm y");
                // Width 1 differentiates a sign: the exact 0 is the difference of two numbers of size |dy / x|.
                run[1].assert_close(&dx, if d == 1 { 1e-4 } else { 2e-6 }, "l2_norm dx");
            }
        }
    }
}

#[test]
fn the_oracle_agrees_with_finite_differences() {
    let d = 9;
    let (x, g) = (numbers(1, d), numbers(2, d));
    let dot = |y: Vec<f64>| -> f64 { y.iter().zip(&g).map(|(y, g)| y * g).sum() };
    for kind in [Norm::None, Norm::Layer, Norm::Rms] {
        let want = finite_differences(&x, |x| dot(norm_row(kind, EPS, x).0));
        assert_gradient(&norm_row_grad(kind, EPS, &x, &g), &want, &format!("{kind:?}"));
    }
    let want = finite_differences(&x, |x| dot(l2_norm_row(EPS, x)));
    assert_gradient(&l2_norm_row_grad(EPS, &x, &g), &want, "l2_norm");
}

#[test]
fn a_wrong_shape_is_a_fault_that_names_it() {
    let cx = crate::Ctx::new(1);
    let x = Padded::unset(4, 8);
    let mut y = Padded::unset(4, 7);
    let fault = l2_norm::forward(
        &cx,
        l2_norm::Forward {
            x: x.mat(),
            eps: 1e-6,
            y: y.mat_mut(),
        },
    )
    .unwrap_err();
    assert_eq!((fault.kind, fault.op, fault.input), (FaultKind::Shape, "l2_norm", "y"));
    assert_eq!(fault.expected, "[4, 8]");
    let mut y = Padded::unset(4, 8);
    let fault = l2_norm::forward(
        &cx,
        l2_norm::Forward {
            x: x.mat(),
            eps: 0.0,
            y: y.mat_mut(),
        },
    )
    .unwrap_err();
    assert_eq!((fault.kind, fault.input), (FaultKind::Argument, "eps"));
}
