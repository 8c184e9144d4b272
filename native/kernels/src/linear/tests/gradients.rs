//! The oracles against finite differences of `sum(y * dy)`.

use super::*;

const SHAPE: [usize; 3] = [3, 5, 4];

fn dy() -> Vec<f64> {
    numbers(9, SHAPE[0] * SHAPE[2])
}

fn objective(y: &[f64]) -> f64 {
    y.iter().zip(&dy()).map(|(y, g)| y * g).sum()
}

type Put<P> = fn(&mut P, Vec<f64>);

/// Compares `got`, the gradient at `x`, with differences of the problem's output; `put` sets `x` in a problem.
fn check<P: Clone>((problem, forward): (&P, fn(&P) -> Vec<f64>), (x, put): (&[f64], Put<P>), got: &[f64], what: &str) {
    let differences = finite_differences(x, |x| {
        let mut moved = problem.clone();
        put(&mut moved, x.to_vec());
        objective(&forward(&moved))
    });
    assert_gradient(got, &differences, what);
}

#[test]
fn norm_linear_agrees_with_finite_differences() {
    for (norm, act) in [
        (Norm::Layer, Act::Silu),
        (Norm::Rms, Act::Relu),
        (Norm::None, Act::None),
    ] {
        let p = norm_linear_problem(SHAPE, norm, act, dropout(1));
        let [dx, dw, db] = p.backward(&dy());
        let layer = (&p, NormLinear::forward as fn(&_) -> _);
        check(layer, (&p.x, |p, x| p.x = x), &dx, "norm_linear dx");
        check(layer, (&p.w, |p, w| p.w = w), &dw, "norm_linear dw");
        let bias = p.bias.as_deref().unwrap();
        check(layer, (bias, |p, bias| p.bias = Some(bias)), &db, "norm_linear db");
    }
}

#[test]
fn gated_norm_linear_residual_agrees_with_finite_differences() {
    let [t, d, n] = SHAPE;
    let p = GatedNormLinearResidual {
        shape: SHAPE,
        u: numbers(1, t * d),
        o: numbers(2, t * d),
        norm: Norm::Layer,
        eps: EPS,
        dropout: dropout(2),
        w: numbers(3, d * n),
        bias: numbers(4, n),
        x: numbers(5, t * n),
    };
    let [du, d_o, dw, db] = p.backward(&dy());
    let layer = (&p, GatedNormLinearResidual::forward as fn(&_) -> _);
    check(layer, (&p.u, |p, u| p.u = u), &du, "gated du");
    check(layer, (&p.o, |p, o| p.o = o), &d_o, "gated do");
    check(layer, (&p.w, |p, w| p.w = w), &dw, "gated dw");
    check(layer, (&p.bias, |p, bias| p.bias = bias), &db, "gated db");
}

#[test]
fn swiglu_linear_residual_agrees_with_finite_differences() {
    let [t, d, n] = SHAPE;
    let p = SwigluLinearResidual {
        shape: SHAPE,
        h: numbers(1, t * 2 * d),
        w: numbers(2, d * n),
        x: numbers(3, t * n),
    };
    let [dh, dw] = p.backward(&dy());
    let layer = (&p, SwigluLinearResidual::forward as fn(&_) -> _);
    check(layer, (&p.h, |p, h| p.h = h), &dh, "swiglu dh");
    check(layer, (&p.w, |p, w| p.w = w), &dw, "swiglu dw");
}

#[test]
fn linear_residual_agrees_with_finite_differences() {
    let [t, d, n] = SHAPE;
    let p = LinearResidual {
        shape: SHAPE,
        x: numbers(1, t * d),
        drop_in: dropout(3),
        w: numbers(2, d * n),
        bias: numbers(3, n),
        drop_out: dropout(4),
        residual: numbers(4, t * n),
    };
    let [dx, dw, db] = p.backward(&dy());
    let layer = (&p, LinearResidual::forward as fn(&_) -> _);
    check(layer, (&p.x, |p, x| p.x = x), &dx, "linear_residual dx");
    check(layer, (&p.w, |p, w| p.w = w), &dw, "linear_residual dw");
    check(layer, (&p.bias, |p, bias| p.bias = bias), &db, "linear_residual db");
}
