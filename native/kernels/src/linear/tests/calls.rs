//! What a call refuses, and that a repeated one allocates nothing.

use super::*;
use crate::fault::FaultKind;

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
        w: w.mat().into(),
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
        w: right.mat().into(),
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
            w: w.mat().into(),
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
            w: w.mat().into(),
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
