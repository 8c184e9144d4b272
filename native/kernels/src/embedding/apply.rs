//! The end of a row's update: its summed gradient goes through the normalisation, if any, and to the optimiser.

use super::Contribution;
use crate::gathered::dot;
use crate::mat::{Disjoint, MatMut};
use crate::optim::{AdamFactors, adam_vector};
use crate::rows::{Element, RowsMut, load_vector, store_vector};
use crate::simd::{LANES, Simd};

/// What becomes of a row's gradient: `Update` with its constants worked out.
pub(super) enum Rule<'a> {
    Dense(MatMut),
    SquareSum,
    LazyAdam {
        m: MatMut,
        v: MatMut,
        factors: AdamFactors,
    },
    RowAdagrad {
        state: Disjoint<'a, f32>,
        lr: f32,
        eps: f32,
        /// `1 - lr * weight_decay`
        keep: f32,
        grad_scale: f32,
    },
}

/// One update of a table.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    pub table: RowsMut,
    pub contributions: &'a [Contribution],
    pub rule: &'a Rule<'a>,
    /// Of the contributions that are normalised.
    pub eps: f32,
}

/// A table and the rule that updates it.
pub(super) struct Target<'a, E> {
    pub table: MatMut<E>,
    pub rule: &'a Rule<'a>,
    /// Below this length a row is normalised by it instead.
    pub eps: f32,
}

impl<E: Element> Target<'_, E> {
    /// Finishes row `id`. `gradient` is complete but for `unit`, the gradient of the normalised row. Returns the
    /// square of the gradient's length if that is the rule, else 0.
    ///
    /// # Safety
    /// This task alone has row `id` of the table and of the rule's state; `gradient` and `unit` hold `cols` numbers and
    /// zeros up to whole vectors; target features as for [`Simd`].
    #[inline(always)]
    pub unsafe fn finish<V: Simd>(&self, id: usize, gradient: &mut [f32], unit: Option<&[f32]>) -> f64 {
        unsafe {
            if let Some(unit) = unit {
                self.add_through_norm::<V>(id, unit, gradient);
            }
            self.apply::<V>(id, gradient.as_ptr())
        }
    }

    /// `to += (g - ehat (ehat . g)) / |e|`, or `g / eps` for a row shorter than eps.
    #[inline(always)]
    unsafe fn add_through_norm<V: Simd>(&self, id: usize, gradient: &[f32], to: &mut [f32]) {
        let cols = self.table.cols;
        // SAFETY: the caller's.
        unsafe {
            let row = self.table.row(id).as_ptr();
            let (mut square, mut product) = (V::zero(), V::zero());
            for k in 0..cols.div_ceil(LANES) {
                let x = load_vector::<V, E>(row, k, cols);
                square = x.fma(x, square);
                product = x.fma(V::load(gradient.as_ptr().add(k * LANES)), product);
            }
            let norm = square.sum().sqrt();
            let inverse = 1.0 / norm.max(self.eps);
            let along = if norm > self.eps {
                product.sum() * inverse * inverse
            } else {
                0.0
            };
            for k in 0..cols.div_ceil(LANES) {
                let g = V::load(gradient.as_ptr().add(k * LANES));
                let inside = load_vector::<V, E>(row, k, cols).fnma(V::splat(along), g);
                let sum = to.as_mut_ptr().add(k * LANES);
                inside.fma(V::splat(inverse), V::load(sum)).store(sum);
            }
        }
    }

    #[inline(always)]
    unsafe fn apply<V: Simd>(&self, id: usize, gradient: *const f32) -> f64 {
        let cols = self.table.cols;
        let vectors = cols.div_ceil(LANES);
        // SAFETY: the caller's.
        unsafe {
            let table = self.table.row(id).as_mut_ptr();
            match self.rule {
                Rule::Dense(to) => {
                    let to = to.row(id).as_mut_ptr();
                    for k in 0..vectors {
                        let sum = V::load(gradient.add(k * LANES)).add(load_vector::<V, f32>(to, k, cols));
                        store_vector::<V, f32>(sum, to, k, cols);
                    }
                }
                Rule::SquareSum => return f64::from(dot::<V>(gradient, gradient, cols)),
                Rule::LazyAdam { m, v, factors } => {
                    let (m, v) = (m.row(id).as_mut_ptr(), v.row(id).as_mut_ptr());
                    for k in 0..vectors {
                        let (p0, g) = (load_vector::<V, E>(table, k, cols), V::load(gradient.add(k * LANES)));
                        let (m0, v0) = (load_vector::<V, f32>(m, k, cols), load_vector::<V, f32>(v, k, cols));
                        let (p1, m1, v1) = adam_vector::<V>(factors, p0, g, m0, v0);
                        store_vector::<V, E>(p1, table, k, cols);
                        store_vector::<V, f32>(m1, m, k, cols);
                        store_vector::<V, f32>(v1, v, k, cols);
                    }
                }
                Rule::RowAdagrad {
                    state,
                    lr,
                    eps,
                    keep,
                    grad_scale,
                } => {
                    let state = &mut state.range(id, 1)[0];
                    *state += dot::<V>(gradient, gradient, cols) * grad_scale * grad_scale / cols as f32;
                    let rate = V::splat(lr * grad_scale / (state.sqrt() + eps));
                    for k in 0..vectors {
                        let p = load_vector::<V, E>(table, k, cols).mul(V::splat(*keep));
                        let p = V::load(gradient.add(k * LANES)).fnma(rate, p);
                        store_vector::<V, E>(p, table, k, cols);
                    }
                }
            }
            0.0
        }
    }
}
