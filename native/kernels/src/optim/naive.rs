//! The oracle of the optimisers: double precision, one parameter after the other.

use super::Adam;

/// Parameter and moments after one AdamW step.
pub struct Step {
    pub p: f64,
    pub m: f64,
    pub v: f64,
}

pub fn adamw(hyper: &Adam, at: Step, gradient: f64) -> Step {
    let (beta1, beta2) = (f64::from(hyper.beta1), f64::from(hyper.beta2));
    let (lr, t) = (f64::from(hyper.lr), hyper.step as f64);
    let m = beta1 * at.m + (1.0 - beta1) * gradient;
    let v = beta2 * at.v + (1.0 - beta2) * gradient * gradient;
    let corrected = (v / (1.0 - beta2.powf(t))).sqrt() + f64::from(hyper.eps);
    let p = at.p * (1.0 - lr * f64::from(hyper.weight_decay)) - lr * (m / (1.0 - beta1.powf(t))) / corrected;
    Step { p, m, v }
}

/// A row and its accumulator after one step of row-wise AdaGrad.
pub fn row_adagrad(lr: f64, eps: f64, row: &[f64], state: f64, gradient: &[f64]) -> (Vec<f64>, f64) {
    let state = state + gradient.iter().map(|g| g * g).sum::<f64>() / gradient.len() as f64;
    let rate = lr / (state.sqrt() + eps);
    (row.iter().zip(gradient).map(|(p, g)| p - rate * g).collect(), state)
}
