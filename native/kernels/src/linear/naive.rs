//! The oracle of the fused layers: double precision, plain loops, one step after the other as on paper.
//!
//! Letters: T tokens, D input width, N output width; matrices are row-major vectors.

use super::{Act, Norm, dropout_row};
use crate::norm::naive::{norm_row, norm_row_grad};
use crate::rng::Dropout;

/// `a[t, d] w[d, n] + b`.
pub fn affine(a: &[f64], w: &[f64], b: Option<&[f64]>, [t, d, n]: [usize; 3]) -> Vec<f64> {
    let mut y = vec![0.0; t * n];
    for i in 0..t {
        for j in 0..n {
            let product: f64 = (0..d).map(|k| a[i * d + k] * w[k * n + j]).sum();
            y[i * n + j] = product + b.map_or(0.0, |b| b[j]);
        }
    }
    y
}

/// Gradients of [`affine`]: of `a`, of `w`, of `b`.
pub fn affine_grad(a: &[f64], w: &[f64], dy: &[f64], [t, d, n]: [usize; 3]) -> [Vec<f64>; 3] {
    let (mut da, mut dw, mut db) = (vec![0.0; t * d], vec![0.0; d * n], vec![0.0; n]);
    for i in 0..t {
        for j in 0..n {
            let g = dy[i * n + j];
            db[j] += g;
            for k in 0..d {
                da[i * d + k] += g * w[k * n + j];
                dw[k * n + j] += g * a[i * d + k];
            }
        }
    }
    [da, dw, db]
}

/// `x` times the factors of `dropout`.
pub fn dropped(x: &[f64], dropout: Dropout, cols: usize) -> Vec<f64> {
    let factor = |at: usize| f64::from(dropout.factor(dropout_row(at / cols, cols) + (at % cols) as u64));
    x.iter().enumerate().map(|(at, x)| x * factor(at)).collect()
}

/// Every row of `x`, normed.
pub fn normed(norm: Norm, eps: f64, x: &[f64], cols: usize) -> Vec<f64> {
    x.chunks(cols).flat_map(|row| norm_row(norm, eps, row).0).collect()
}

/// Gradient of `x` from that of [`normed`].
pub fn normed_grad(norm: Norm, eps: f64, x: &[f64], g: &[f64], cols: usize) -> Vec<f64> {
    x.chunks(cols)
        .zip(g.chunks(cols))
        .flat_map(|(x, g)| norm_row_grad(norm, eps, x, g))
        .collect()
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

pub fn silu(x: f64) -> f64 {
    x * sigmoid(x)
}

pub fn silu_grad(x: f64) -> f64 {
    sigmoid(x) * (1.0 + x * (1.0 - sigmoid(x)))
}

fn times(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a * b).collect()
}

fn plus(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

/// See [`super::norm_linear`].
#[derive(Clone, Debug)]
pub struct NormLinear {
    pub shape: [usize; 3],
    pub x: Vec<f64>,
    pub norm: Norm,
    pub eps: f64,
    pub dropout: Dropout,
    pub w: Vec<f64>,
    pub bias: Option<Vec<f64>>,
    pub act: Act,
}

impl NormLinear {
    fn input(&self) -> Vec<f64> {
        let d = self.shape[1];
        dropped(&normed(self.norm, self.eps, &self.x, d), self.dropout, d)
    }

    /// Pre-activation.
    pub fn z(&self) -> Vec<f64> {
        affine(&self.input(), &self.w, self.bias.as_deref(), self.shape)
    }

    pub fn forward(&self) -> Vec<f64> {
        let act = |z: f64| match self.act {
            Act::None => z,
            Act::Silu => silu(z),
            Act::Relu => z.max(0.0),
        };
        self.z().into_iter().map(act).collect()
    }

    /// Gradients of x, w and b.
    pub fn backward(&self, dy: &[f64]) -> [Vec<f64>; 3] {
        let d = self.shape[1];
        let slope = |z: f64| match self.act {
            Act::None => 1.0,
            Act::Silu => silu_grad(z),
            Act::Relu => f64::from(u8::from(z > 0.0)),
        };
        let dz: Vec<f64> = self.z().into_iter().zip(dy).map(|(z, dy)| dy * slope(z)).collect();
        let [da, dw, db] = affine_grad(&self.input(), &self.w, &dz, self.shape);
        [
            normed_grad(self.norm, self.eps, &self.x, &dropped(&da, self.dropout, d), d),
            dw,
            db,
        ]
    }
}

/// See [`super::gated_norm_linear_residual`].
#[derive(Clone, Debug)]
pub struct GatedNormLinearResidual {
    pub shape: [usize; 3],
    pub u: Vec<f64>,
    pub o: Vec<f64>,
    pub norm: Norm,
    pub eps: f64,
    pub dropout: Dropout,
    pub w: Vec<f64>,
    pub bias: Vec<f64>,
    pub x: Vec<f64>,
}

impl GatedNormLinearResidual {
    fn input(&self) -> Vec<f64> {
        let m = self.shape[1];
        dropped(
            &times(&self.u, &normed(self.norm, self.eps, &self.o, m)),
            self.dropout,
            m,
        )
    }

    pub fn forward(&self) -> Vec<f64> {
        plus(&affine(&self.input(), &self.w, Some(&self.bias), self.shape), &self.x)
    }

    /// Gradients of u, o, w and b.
    pub fn backward(&self, dy: &[f64]) -> [Vec<f64>; 4] {
        let m = self.shape[1];
        let [da, dw, db] = affine_grad(&self.input(), &self.w, dy, self.shape);
        let g = dropped(&da, self.dropout, m);
        let du = times(&g, &normed(self.norm, self.eps, &self.o, m));
        [
            du,
            normed_grad(self.norm, self.eps, &self.o, &times(&g, &self.u), m),
            dw,
            db,
        ]
    }
}

/// See [`super::swiglu_linear_residual`]; `shape` is `[T, m, D]`.
#[derive(Clone, Debug)]
pub struct SwigluLinearResidual {
    pub shape: [usize; 3],
    pub h: Vec<f64>,
    pub w: Vec<f64>,
    pub x: Vec<f64>,
}

impl SwigluLinearResidual {
    fn halves(&self) -> impl Iterator<Item = (f64, f64)> {
        let m = self.shape[1];
        self.h
            .chunks(2 * m)
            .flat_map(move |row| (0..m).map(move |k| (row[k], row[m + k])))
    }

    fn input(&self) -> Vec<f64> {
        self.halves().map(|(h1, h3)| silu(h1) * h3).collect()
    }

    pub fn forward(&self) -> Vec<f64> {
        plus(&affine(&self.input(), &self.w, None, self.shape), &self.x)
    }

    /// Gradients of h and w.
    pub fn backward(&self, dy: &[f64]) -> [Vec<f64>; 2] {
        let m = self.shape[1];
        let [da, dw, _] = affine_grad(&self.input(), &self.w, dy, self.shape);
        let mut dh = vec![0.0; self.h.len()];
        for (at, (h1, h3)) in self.halves().enumerate() {
            let row = at / m * 2 * m + at % m;
            dh[row] = da[at] * h3 * silu_grad(h1);
            dh[row + m] = da[at] * silu(h1);
        }
        [dh, dw]
    }
}

/// See [`super::linear_residual`].
#[derive(Clone, Debug)]
pub struct LinearResidual {
    pub shape: [usize; 3],
    pub x: Vec<f64>,
    pub drop_in: Dropout,
    pub w: Vec<f64>,
    pub bias: Vec<f64>,
    pub drop_out: Dropout,
    pub residual: Vec<f64>,
}

impl LinearResidual {
    fn input(&self) -> Vec<f64> {
        dropped(&self.x, self.drop_in, self.shape[1])
    }

    pub fn forward(&self) -> Vec<f64> {
        let z = affine(&self.input(), &self.w, Some(&self.bias), self.shape);
        plus(&dropped(&z, self.drop_out, self.shape[2]), &self.residual)
    }

    /// Gradients of x, w and b.
    pub fn backward(&self, dy: &[f64]) -> [Vec<f64>; 3] {
        let dz = dropped(dy, self.drop_out, self.shape[2]);
        let [da, dw, db] = affine_grad(&self.input(), &self.w, &dz, self.shape);
        [dropped(&da, self.drop_in, self.shape[1]), dw, db]
    }
}
