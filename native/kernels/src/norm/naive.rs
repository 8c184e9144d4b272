//! The oracle of the norms: double precision, plain loops, nothing shared with the kernels.
//!
//! Letters: D width of a row.

use super::Norm;

/// `norm(x)` of one row, with its reciprocal deviation.
pub fn norm_row(norm: Norm, eps: f64, x: &[f64]) -> (Vec<f64>, f64) {
    let d = x.len() as f64;
    let mean = if norm == Norm::Layer {
        x.iter().sum::<f64>() / d
    } else {
        0.0
    };
    let rstd = match norm {
        Norm::None => 1.0,
        _ => 1.0 / (x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / d + eps).sqrt(),
    };
    (x.iter().map(|x| (x - mean) * rstd).collect(), rstd)
}

/// Gradient of one row of `x` from that of `norm(x)`.
pub fn norm_row_grad(norm: Norm, eps: f64, x: &[f64], g: &[f64]) -> Vec<f64> {
    let (xhat, rstd) = norm_row(norm, eps, x);
    let d = x.len() as f64;
    let mean_g = if norm == Norm::Layer {
        g.iter().sum::<f64>() / d
    } else {
        0.0
    };
    let dot: f64 = g.iter().zip(&xhat).map(|(g, x)| g * x).sum::<f64>() / d;
    let dot = if norm == Norm::None { 0.0 } else { dot };
    g.iter()
        .zip(&xhat)
        .map(|(g, xhat)| rstd * (g - mean_g - xhat * dot))
        .collect()
}

/// `x / max(|x|, eps)` of one row.
pub fn l2_norm_row(eps: f64, x: &[f64]) -> Vec<f64> {
    let length = x.iter().map(|x| x * x).sum::<f64>().sqrt().max(eps);
    x.iter().map(|x| x / length).collect()
}

/// Gradient of one row of `x` from that of its L2 norm.
pub fn l2_norm_row_grad(eps: f64, x: &[f64], g: &[f64]) -> Vec<f64> {
    let length = x.iter().map(|x| x * x).sum::<f64>().sqrt();
    if length <= eps {
        return g.iter().map(|g| g / eps).collect();
    }
    let along: f64 = x.iter().zip(g).map(|(x, g)| x * g).sum::<f64>() / (length * length);
    x.iter().zip(g).map(|(x, g)| (g - x * along) / length).collect()
}
