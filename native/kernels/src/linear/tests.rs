//! The fused layers against their oracle, at shapes that straddle the tile and the block.

mod calls;
mod gradients;
mod mask;
mod packed;

use super::naive::*;
use super::*;
use crate::Ctx;
use crate::rng::{Dropout, Key};
use crate::testing::*;

const EPS: f64 = 1e-6;
/// Sums over at most 200 tokens or 100 features of products below two.
const TOLERANCE: f64 = 3e-5;

/// `[T, D, N]`: every number of tokens, widths in pairs that mix the awkward with the even.
fn shapes() -> Vec<[usize; 3]> {
    let widths = [
        (8, 1),
        (15, 100),
        (16, 16),
        (17, 64),
        (25, 8),
        (50, 200),
        (64, 17),
        (100, 50),
        (33, 25),
    ];
    let tokens = [0, 1, 5, 6, 7, 95, 96, 97, 200];
    let pair = |t: &usize, shift: usize| {
        let at = tokens.iter().position(|x| x == t).unwrap_or(0) + shift;
        let (d, n) = widths[at % widths.len()];
        [*t, d, n]
    };
    tokens
        .iter()
        .flat_map(|t| [0, 2, 5].map(|shift| pair(t, shift)))
        .collect()
}

fn dropout(purpose: u64) -> Dropout {
    Dropout::new(Key::new(7, 1, purpose), 0.3)
}

fn floats(values: &[f64]) -> Vec<f32> {
    values.iter().map(|x| *x as f32).collect()
}

fn sum(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

fn assert_all(run: &[Padded], want: &[(&str, &[f64])], what: &str) {
    assert_eq!(run.len(), want.len());
    for (got, (name, want)) in run.iter().zip(want) {
        got.assert_close(want, TOLERANCE, &format!("{what} {name}"));
    }
}

fn norm_linear_problem([t, d, n]: [usize; 3], norm: Norm, act: Act, dropout: Dropout) -> NormLinear {
    NormLinear {
        shape: [t, d, n],
        x: numbers(1, t * d),
        norm,
        eps: EPS,
        dropout,
        w: numbers(2, d * n),
        bias: Some(numbers(3, n)),
        act,
    }
}

#[test]
fn norm_linear_matches_its_oracle() {
    let contexts = contexts();
    let kinds = [
        (Norm::Layer, Act::Silu, Dropout::off()),
        (Norm::Rms, Act::None, dropout(1)),
        (Norm::Layer, Act::Relu, dropout(1)),
        (Norm::None, Act::Silu, Dropout::off()),
    ];
    for shape @ [t, d, n] in shapes() {
        for (norm, act, dropout) in kinds {
            let p = norm_linear_problem(shape, norm, act, dropout);
            let (dy, before) = (numbers(4, t * n), numbers(5, t * d));
            let (y, z, [dx, dw, db]) = (p.forward(), p.z(), p.backward(&dy));
            let bias = floats(&numbers(3, n));
            let outputs = on_every_context(&contexts, |cx| {
                let (x, w) = (Padded::from(&p.x, t, d), Padded::from(&p.w, d, n));
                let (mut ys, mut zs, mut stats) = (Padded::unset(t, n), Padded::unset(t, n), Padded::unset(t, 2));
                let (mut dys, mut dxs) = (Padded::from(&dy, t, n), Padded::from(&before, t, d));
                let (mut dws, mut dbs, mut alone) = (Padded::unset(d, n), Padded::unset(1, n), Padded::unset(d, n));
                let forward = norm_linear::Forward {
                    x: x.mat(),
                    norm,
                    eps: EPS as f32,
                    dropout,
                    w: w.mat().into(),
                    bias: Some(&bias),
                    act,
                    y: ys.mat_mut().into(),
                    z: Some(zs.mat_mut().into()),
                    stats: stats.mat_mut(),
                };
                norm_linear::forward(cx, forward).unwrap();
                let saved = match act {
                    Act::None => None,
                    Act::Silu => Some(zs.mat().into()),
                    Act::Relu => Some(ys.mat().into()),
                };
                let backward = norm_linear::Backward {
                    x: x.mat(),
                    norm,
                    dropout,
                    w: w.mat().into(),
                    act,
                    saved,
                    stats: stats.mat(),
                    dy: dys.mat_mut().into(),
                    dx: None,
                    dw: alone.overwrite(),
                    db: None,
                };
                norm_linear::backward(cx, backward).unwrap();
                let all = norm_linear::Backward {
                    dx: Some(dxs.accumulate()),
                    dw: dws.overwrite(),
                    db: Some(dbs.overwrite()),
                    ..backward
                };
                norm_linear::backward(cx, all).unwrap();
                vec![ys, zs, dxs, dws, dbs, alone]
            });
            let dx = sum(&dx, &before);
            let want: [(&str, &[f64]); 6] = [
                ("y", &y),
                ("z", &z),
                ("dx", &dx),
                ("dw", &dw),
                ("db", &db),
                ("dw without dx", &dw),
            ];
            for run in outputs {
                assert_all(&run, &want, &format!("norm_linear {shape:?} {norm:?} {act:?}"));
            }
        }
    }
}

#[test]
fn gated_norm_linear_residual_matches_its_oracle() {
    let contexts = contexts();
    for shape @ [t, m, d] in shapes() {
        for (norm, dropout) in [(Norm::Layer, Dropout::off()), (Norm::Rms, dropout(2))] {
            let p = GatedNormLinearResidual {
                shape,
                u: numbers(1, t * m),
                o: numbers(2, t * m),
                norm,
                eps: EPS,
                dropout,
                w: numbers(3, m * d),
                bias: numbers(4, d),
                x: numbers(5, t * d),
            };
            let (dy, before) = (numbers(6, t * d), numbers(7, t * m));
            let (y, [du, d_o, dw, db]) = (p.forward(), p.backward(&dy));
            let bias = floats(&p.bias);
            let outputs = on_every_context(&contexts, |cx| {
                let (u, o, w) = (
                    Padded::from(&p.u, t, m),
                    Padded::from(&p.o, t, m),
                    Padded::from(&p.w, m, d),
                );
                // In place: the layer's input is its residual and its output.
                let (mut y, mut stats, dys) = (Padded::from(&p.x, t, d), Padded::unset(t, 2), Padded::from(&dy, t, d));
                let (mut dus, mut dos) = (Padded::unset(t, m), Padded::from(&before, t, m));
                let (mut dws, mut dbs) = (Padded::unset(m, d), Padded::unset(1, d));
                let forward = gated_norm_linear_residual::Forward {
                    u: u.mat().into(),
                    o: o.mat(),
                    norm,
                    eps: EPS as f32,
                    dropout,
                    mask: None,
                    w: w.mat().into(),
                    bias: Some(&bias),
                    x: y.mat(),
                    y: y.mat_mut(),
                    stats: stats.mat_mut(),
                };
                gated_norm_linear_residual::forward(cx, forward).unwrap();
                let backward = gated_norm_linear_residual::Backward {
                    u: u.mat().into(),
                    o: o.mat(),
                    norm,
                    dropout,
                    mask: None,
                    w: w.mat().into(),
                    stats: stats.mat(),
                    dy: dys.mat(),
                    du: dus.overwrite().into(),
                    d_o: dos.accumulate(),
                    dw: dws.overwrite(),
                    db: Some(dbs.overwrite()),
                };
                gated_norm_linear_residual::backward(cx, backward).unwrap();
                vec![y, dus, dos, dws, dbs]
            });
            let d_o = sum(&d_o, &before);
            let want: [(&str, &[f64]); 5] = [("y", &y), ("du", &du), ("do", &d_o), ("dw", &dw), ("db", &db)];
            for run in outputs {
                assert_all(&run, &want, &format!("gated_norm_linear_residual {shape:?} {norm:?}"));
            }
        }
    }
}

#[test]
fn swiglu_linear_residual_matches_its_oracle() {
    let contexts = contexts();
    for shape @ [t, m, d] in shapes() {
        let p = SwigluLinearResidual {
            shape,
            h: numbers(1, t * 2 * m),
            w: numbers(2, m * d),
            x: numbers(3, t * d),
        };
        let (dy, before) = (numbers(4, t * d), numbers(5, t * 2 * m));
        let (y, [dh, dw]) = (p.forward(), p.backward(&dy));
        let outputs = on_every_context(&contexts, |cx| {
            let (h, w, x) = (
                Padded::from(&p.h, t, 2 * m),
                Padded::from(&p.w, m, d),
                Padded::from(&p.x, t, d),
            );
            let (mut ys, dys) = (Padded::unset(t, d), Padded::from(&dy, t, d));
            let (mut dhs, mut more) = (Padded::unset(t, 2 * m), Padded::from(&before, t, 2 * m));
            let mut dws = Padded::unset(m, d);
            let forward = swiglu_linear_residual::Forward {
                h: h.mat(),
                w: w.mat().into(),
                x: x.mat(),
                y: ys.mat_mut(),
            };
            swiglu_linear_residual::forward(cx, forward).unwrap();
            for dh in [dhs.overwrite(), more.accumulate()] {
                let backward = swiglu_linear_residual::Backward {
                    h: h.mat(),
                    w: w.mat().into(),
                    dy: dys.mat(),
                    dh,
                    dw: dws.overwrite(),
                };
                swiglu_linear_residual::backward(cx, backward).unwrap();
            }
            vec![ys, dhs, more, dws]
        });
        let more = sum(&dh, &before);
        let want: [(&str, &[f64]); 4] = [("y", &y), ("dh", &dh), ("dh +=", &more), ("dw", &dw)];
        for run in outputs {
            assert_all(&run, &want, &format!("swiglu_linear_residual {shape:?}"));
        }
    }
}

#[test]
fn linear_residual_matches_its_oracle() {
    let contexts = contexts();
    for shape @ [t, d, n] in shapes() {
        for (drop_in, drop_out) in [(Dropout::off(), Dropout::off()), (dropout(3), dropout(4))] {
            let p = LinearResidual {
                shape,
                x: numbers(1, t * d),
                drop_in,
                w: numbers(2, d * n),
                bias: numbers(3, n),
                drop_out,
                residual: numbers(4, t * n),
            };
            let (dy, before) = (numbers(5, t * n), numbers(6, t * d));
            let (y, [dx, dw, db]) = (p.forward(), p.backward(&dy));
            let bias = floats(&p.bias);
            let outputs = on_every_context(&contexts, |cx| {
                let (x, w, r) = (
                    Padded::from(&p.x, t, d),
                    Padded::from(&p.w, d, n),
                    Padded::from(&p.residual, t, n),
                );
                let (mut ys, dys, mut dxs) = (
                    Padded::unset(t, n),
                    Padded::from(&dy, t, n),
                    Padded::from(&before, t, d),
                );
                let (mut dws, mut dbs) = (Padded::from(&p.w, d, n), Padded::unset(1, n));
                let forward = linear_residual::Forward {
                    x: x.mat(),
                    drop_in,
                    w: w.mat().into(),
                    bias: Some(&bias),
                    drop_out,
                    residual: r.mat(),
                    y: ys.mat_mut(),
                };
                linear_residual::forward(cx, forward).unwrap();
                let backward = linear_residual::Backward {
                    x: x.mat(),
                    drop_in,
                    w: w.mat().into(),
                    drop_out,
                    dy: dys.mat(),
                    dx: dxs.accumulate(),
                    dw: dws.accumulate(),
                    db: Some(dbs.overwrite()),
                };
                linear_residual::backward(cx, backward).unwrap();
                vec![ys, dxs, dws, dbs]
            });
            let (dx, dw) = (sum(&dx, &before), sum(&dw, &p.w));
            let want: [(&str, &[f64]); 4] = [("y", &y), ("dx +=", &dx), ("dw +=", &dw), ("db", &db)];
            for run in outputs {
                assert_all(&run, &want, &format!("linear_residual {shape:?}"));
            }
        }
    }
}
