//! The fused layers against their oracle, at shapes that straddle the tile and the block; the oracle against finite
//! differences.

mod mask;

use super::naive::*;
use super::*;
use crate::Ctx;
use crate::fault::FaultKind;
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
                    w: w.mat(),
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
                    w: w.mat(),
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
                    w: w.mat(),
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
                    w: w.mat(),
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
                w: w.mat(),
                x: x.mat(),
                y: ys.mat_mut(),
            };
            swiglu_linear_residual::forward(cx, forward).unwrap();
            for dh in [dhs.overwrite(), more.accumulate()] {
                let backward = swiglu_linear_residual::Backward {
                    h: h.mat(),
                    w: w.mat(),
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
                    w: w.mat(),
                    bias: Some(&bias),
                    drop_out,
                    residual: r.mat(),
                    y: ys.mat_mut(),
                };
                linear_residual::forward(cx, forward).unwrap();
                let backward = linear_residual::Backward {
                    x: x.mat(),
                    drop_in,
                    w: w.mat(),
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

#[test]
fn the_oracles_agree_with_finite_differences() {
    let shape @ [t, d, n] = [3, 5, 4];
    let dy = numbers(9, t * n);
    let dot = |y: Vec<f64>| -> f64 { y.iter().zip(&dy).map(|(y, g)| y * g).sum() };

    for (norm, act) in [
        (Norm::Layer, Act::Silu),
        (Norm::Rms, Act::Relu),
        (Norm::None, Act::None),
    ] {
        let p = norm_linear_problem(shape, norm, act, dropout(1));
        let [dx, dw, db] = p.backward(&dy);
        let with = |change: &dyn Fn(&mut NormLinear)| {
            let mut p = p.clone();
            change(&mut p);
            dot(p.forward())
        };
        assert_gradient(
            &dx,
            &finite_differences(&p.x, |v| with(&|p| p.x = v.to_vec())),
            "norm_linear dx",
        );
        assert_gradient(
            &dw,
            &finite_differences(&p.w, |v| with(&|p| p.w = v.to_vec())),
            "norm_linear dw",
        );
        let bias = numbers(3, n);
        assert_gradient(
            &db,
            &finite_differences(&bias, |v| with(&|p| p.bias = Some(v.to_vec()))),
            "norm_linear db",
        );
    }

    let p = GatedNormLinearResidual {
        shape,
        u: numbers(1, t * d),
        o: numbers(2, t * d),
        norm: Norm::Layer,
        eps: EPS,
        dropout: dropout(2),
        w: numbers(3, d * n),
        bias: numbers(4, n),
        x: numbers(5, t * n),
    };
    let [du, d_o, dw, _] = p.backward(&dy);
    let with = |change: &dyn Fn(&mut GatedNormLinearResidual)| {
        let mut p = p.clone();
        change(&mut p);
        dot(p.forward())
    };
    assert_gradient(
        &du,
        &finite_differences(&p.u, |v| with(&|p| p.u = v.to_vec())),
        "gated du",
    );
    assert_gradient(
        &d_o,
        &finite_differences(&p.o, |v| with(&|p| p.o = v.to_vec())),
        "gated do",
    );
    assert_gradient(
        &dw,
        &finite_differences(&p.w, |v| with(&|p| p.w = v.to_vec())),
        "gated dw",
    );

    let p = SwigluLinearResidual {
        shape,
        h: numbers(1, t * 2 * d),
        w: numbers(2, d * n),
        x: numbers(3, t * n),
    };
    let [dh, dw] = p.backward(&dy);
    let with = |h: &[f64], w: &[f64]| {
        dot(SwigluLinearResidual {
            h: h.to_vec(),
            w: w.to_vec(),
            ..p.clone()
        }
        .forward())
    };
    assert_gradient(&dh, &finite_differences(&p.h, |h| with(h, &p.w)), "swiglu dh");
    assert_gradient(&dw, &finite_differences(&p.w, |w| with(&p.h, w)), "swiglu dw");

    let p = LinearResidual {
        shape,
        x: numbers(1, t * d),
        drop_in: dropout(3),
        w: numbers(2, d * n),
        bias: numbers(3, n),
        drop_out: dropout(4),
        residual: numbers(4, t * n),
    };
    let [dx, dw, db] = p.backward(&dy);
    let with = |x: &[f64], w: &[f64], b: &[f64]| {
        dot(LinearResidual {
            x: x.to_vec(),
            w: w.to_vec(),
            bias: b.to_vec(),
            ..p.clone()
        }
        .forward())
    };
    assert_gradient(
        &dx,
        &finite_differences(&p.x, |x| with(x, &p.w, &p.bias)),
        "linear_residual dx",
    );
    assert_gradient(
        &dw,
        &finite_differences(&p.w, |w| with(&p.x, w, &p.bias)),
        "linear_residual dw",
    );
    assert_gradient(
        &db,
        &finite_differences(&p.bias, |b| with(&p.x, &p.w, b)),
        "linear_residual db",
    );
}

#[test]
fn wrong_shapes_and_missing_inputs_are_faults_that_name_them() {
    let cx = Ctx::new(1);
    let (x, w) = (Padded::unset(4, 8), Padded::unset(9, 16));
    let (mut y, mut stats) = (Padded::unset(4, 16), Padded::unset(4, 2));
    let mut dw = Padded::unset(8, 16);
    let forward = norm_linear::Forward {
        x: x.mat(),
        norm: Norm::Layer,
        eps: 1e-6,
        dropout: Dropout::off(),
        w: w.mat(),
        bias: None,
        act: Act::Silu,
        y: y.mat_mut().into(),
        z: None,
        stats: stats.mat_mut(),
    };
    let fault = norm_linear::forward(&cx, forward).unwrap_err();
    assert_eq!(
        (fault.kind, fault.op, fault.input),
        (FaultKind::Shape, "norm_linear", "w")
    );
    assert_eq!(fault.expected, "[8, 16]");
    let right = Padded::unset(8, 16);
    let backward = norm_linear::Backward {
        x: x.mat(),
        norm: Norm::Layer,
        dropout: Dropout::off(),
        w: right.mat(),
        act: Act::Silu,
        saved: None,
        stats: stats.mat(),
        dy: y.mat_mut().into(),
        dx: None,
        dw: dw.overwrite(),
        db: None,
    };
    let fault = norm_linear::backward(&cx, backward).unwrap_err();
    assert_eq!((fault.kind, fault.input), (FaultKind::Argument, "saved"));
}

#[test]
fn a_second_call_asks_the_system_for_no_memory() {
    let cx = Ctx::new(2);
    let [t, d, n] = [300, 50, 200];
    let (x, w) = (
        Padded::from(&numbers(1, t * d), t, d),
        Padded::from(&numbers(2, d * n), d, n),
    );
    let (mut y, mut z, mut stats) = (Padded::unset(t, n), Padded::unset(t, n), Padded::unset(t, 2));
    let (mut dx, mut dw, mut db) = (Padded::unset(t, d), Padded::unset(d, n), Padded::unset(1, n));
    let mut round = || {
        let (norm, act, dropout) = (Norm::Layer, Act::Silu, dropout(1));
        let forward = norm_linear::Forward {
            x: x.mat(),
            norm,
            eps: 1e-6,
            dropout,
            w: w.mat(),
            bias: None,
            act,
            y: y.mat_mut().into(),
            z: Some(z.mat_mut().into()),
            stats: stats.mat_mut(),
        };
        norm_linear::forward(&cx, forward).unwrap();
        let backward = norm_linear::Backward {
            x: x.mat(),
            norm,
            dropout,
            w: w.mat(),
            act,
            saved: Some(z.mat().into()),
            stats: stats.mat(),
            dy: y.mat_mut().into(),
            dx: Some(dx.overwrite()),
            dw: dw.overwrite(),
            db: Some(db.overwrite()),
        };
        norm_linear::backward(&cx, backward).unwrap();
    };
    round();
    let before = cx.arena.system_allocations();
    round();
    assert_eq!(cx.arena.system_allocations(), before);
}
