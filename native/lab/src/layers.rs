//! The fused layers of an HSTU block as it calls them: input projection (N = 4D, SiLU) and gated output projection.

use crate::{Contestant, TOKENS, race};
use turbogr_kernels::linear::{Act, Norm, gated_norm_linear_residual, norm_linear};
use turbogr_kernels::rng::{Dropout, Key};
use turbogr_kernels::{Ctx, Grad, Mat, MatMut};

pub fn race_layers(cx: &Ctx, d: usize) {
    let (t, n) = (TOKENS, 4 * d);
    let numbers = |len: usize| {
        let mut lease = cx.scratch::<f32>(len);
        lease
            .iter_mut()
            .enumerate()
            .for_each(|(i, x)| *x = (i % 17) as f32 * 0.01 - 0.08);
        lease
    };
    let (x, w, o, wo) = (numbers(t * d), numbers(d * n), numbers(t * d), numbers(d * d));
    let (mut y, mut z, mut dy, mut dx, mut du, mut dw) = (
        numbers(t * n),
        numbers(t * n),
        numbers(t * n),
        numbers(t * d),
        numbers(t * d),
        numbers(d * n),
    );
    // SiLU's slope is 1 here: backward overwrites `dy`, which must not shrink to denormals over the rounds.
    let mut steep = cx.scratch::<f32>(t * n);
    steep.fill(30.0);
    let (mut stats, mut bias) = (numbers(2 * t), numbers(d));
    let dropouts = [Dropout::off(), Dropout::new(Key::new(1, 2, 3), 0.2)];
    let (x, o) = (Mat::new(&x, t, d), Mat::new(&o, t, d));
    let (w, wo) = (Mat::new(&w, d, n), Mat::new(&wo, d, d));
    let (y, z, dy) = (
        MatMut::new(&mut y, t, n),
        MatMut::new(&mut z, t, n),
        MatMut::new(&mut dy, t, n),
    );
    let (dx, du, dw) = (
        MatMut::new(&mut dx, t, d),
        MatMut::new(&mut du, t, d),
        MatMut::new(&mut dw, d, n),
    );
    let (stats, db) = (MatMut::new(&mut stats, t, 2), MatMut::new(&mut bias, 1, d));
    let steep = Mat::new(&steep, t, n);
    let (norm, eps) = (Norm::Layer, 1e-6);
    let (up, out) = (2.0 * (t * d * n) as f64, 2.0 * (t * d * d) as f64);

    let project = |dropout| norm_linear::Forward {
        x,
        norm,
        eps,
        dropout,
        w: w.into(),
        bias: None,
        act: Act::Silu,
        y: y.into(),
        z: Some(z.into()),
        stats,
    };
    let project_back = |dropout| norm_linear::Backward {
        x,
        norm,
        dropout,
        w: w.into(),
        act: Act::Silu,
        saved: Some(steep.into()),
        stats: stats.as_ref(),
        dy: dy.into(),
        dx: Some(Grad::overwrite(dx)),
        dw: Grad::overwrite(dw),
        db: None,
    };
    let g = dx.as_ref();
    let (u, dwo) = (
        y.as_ref().columns(0, d),
        MatMut {
            cols: d,
            stride: d,
            ..dw
        },
    );
    let (y_out, d_o) = (z.columns(0, d), dy.columns(0, d));
    let gated = |dropout| gated_norm_linear_residual::Forward {
        u: u.into(),
        o,
        norm,
        eps,
        dropout,
        mask: None,
        w: wo.into(),
        bias: None,
        x,
        y: y_out,
        stats,
    };
    let gated_back = |dropout| gated_norm_linear_residual::Backward {
        u: u.into(),
        o,
        norm,
        dropout,
        mask: None,
        w: wo.into(),
        stats: stats.as_ref(),
        dy: g,
        du: Grad::overwrite(du.into()),
        d_o: Grad::overwrite(d_o),
        dw: Grad::overwrite(dwo),
        db: Some(Grad::overwrite(db)),
    };
    let mut contestants = Vec::new();
    for (dropout, names) in dropouts.into_iter().zip([
        ["norm_linear", "norm_linear back", "gated", "gated back"],
        [
            "norm_linear drop",
            "norm_linear drop back",
            "gated drop",
            "gated drop back",
        ],
    ]) {
        let mut add = |name, flops, run: Box<dyn FnMut()>| contestants.push(Contestant { name, flops, run });
        add(
            names[0],
            up,
            Box::new(move || norm_linear::forward(cx, project(dropout)).expect("fits")),
        );
        add(
            names[1],
            2.0 * up,
            Box::new(move || norm_linear::backward(cx, project_back(dropout)).expect("fits")),
        );
        add(
            names[2],
            out,
            Box::new(move || gated_norm_linear_residual::forward(cx, gated(dropout)).expect("fits")),
        );
        add(
            names[3],
            2.0 * out,
            Box::new(move || gated_norm_linear_residual::backward(cx, gated_back(dropout)).expect("fits")),
        );
    }
    race(cx, &format!("{} thr  D={d}", cx.pool.threads()), contestants);
}
