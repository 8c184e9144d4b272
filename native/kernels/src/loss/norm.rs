//! L2-normalised (or plain) copies of rows, padded to whole vectors, and the backward pass.

use crate::arena::Lease;
use crate::ctx::Ctx;
use crate::gathered::dot;
use crate::mat::{Disjoint, Grad, Mat};
use crate::rows::{Element, Rows, load_vector, store_vector};
use crate::simd::{Kernel, LANES, Simd, dispatch};
use crate::with_rows;

/// Rows of one task.
const TILE: usize = 256;

/// A padded f32 copy of a table's rows, and the factor each was multiplied by.
pub(super) struct UnitRows<'a> {
    rows: Lease<'a, f32>,
    factors: Lease<'a, f32>,
    cols: usize,
    normalize: bool,
    eps: f32,
}

/// `row / max(|row|, eps)` for every row of `table`, or plain copies.
pub(super) fn unit_rows<'a>(cx: &'a Ctx, table: Rows, normalize: bool, eps: f32) -> UnitRows<'a> {
    let (count, cols) = (table.rows(), table.cols());
    let width = cols.next_multiple_of(LANES);
    let (mut rows, mut factors) = (cx.scratch::<f32>(count * width), cx.scratch::<f32>(count));
    {
        let (rows, factors) = (Disjoint::new(&mut rows), Disjoint::new(&mut factors));
        cx.pool.run(count.div_ceil(TILE), |task, _| {
            let from = task * TILE;
            let count = TILE.min(count - from);
            // SAFETY: tasks own disjoint rows; `isa` is this CPU's.
            unsafe {
                let (to, factors) = (rows.range(from * width, count * width), factors.range(from, count));
                with_rows!(Rows, table, table => {
                    dispatch(cx.isa, CopyRows { table, from, to, factors, normalize, eps })
                });
            }
        });
    }
    UnitRows {
        rows,
        factors,
        cols,
        normalize,
        eps,
    }
}

/// `1 / max(|row|, eps)` of every row.
pub(super) fn unit_factors<'a>(cx: &'a Ctx, table: Rows, eps: f32) -> Lease<'a, f32> {
    let count = table.rows();
    let mut factors = cx.scratch::<f32>(count);
    {
        let factors = Disjoint::new(&mut factors);
        cx.pool.run(count.div_ceil(TILE), |task, _| {
            let from = task * TILE;
            // SAFETY: tasks own disjoint rows; `isa` is this CPU's.
            unsafe {
                let to = factors.range(from, TILE.min(count - from));
                with_rows!(Rows, table, table => dispatch(cx.isa, MeasureRows { table, from, to, eps }));
            }
        });
    }
    factors
}

struct MeasureRows<'a, E> {
    table: Mat<E>,
    from: usize,
    to: &'a mut [f32],
    eps: f32,
}

impl<E: Element> Kernel for MeasureRows<'_, E> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        let cols = self.table.cols;
        for (i, factor) in self.to.iter_mut().enumerate() {
            // SAFETY: row `from + i` exists.
            unsafe {
                let row = self.table.row(self.from + i).as_ptr();
                let mut sum = V::zero();
                for k in 0..cols.div_ceil(LANES) {
                    let x = load_vector::<V, E>(row, k, cols);
                    sum = x.fma(x, sum);
                }
                *factor = 1.0 / sum.sum().sqrt().max(self.eps);
            }
        }
    }
}

struct CopyRows<'a, E> {
    table: Mat<E>,
    from: usize,
    to: &'a mut [f32],
    factors: &'a mut [f32],
    normalize: bool,
    eps: f32,
}

impl<E: Element> Kernel for CopyRows<'_, E> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        let cols = self.table.cols;
        let width = cols.next_multiple_of(LANES);
        for (i, factor) in self.factors.iter_mut().enumerate() {
            // SAFETY: row `from + i` exists; its copy holds whole vectors.
            unsafe {
                let source = self.table.row(self.from + i).as_ptr();
                *factor = unit_row::<V, E>(
                    source,
                    cols,
                    self.normalize.then_some(self.eps),
                    &mut self.to[i * width..],
                );
            }
        }
    }
}

/// Copies a row to `to`, padded with zeros, divided by `max(|row|, eps)` if an eps is given; returns the factor.
///
/// # Safety
/// `source` holds `cols` numbers, `to` that many rounded up to whole vectors; target features as for [`Simd`].
#[inline(always)]
pub(super) unsafe fn unit_row<V: Simd, E: Element>(
    source: *const E,
    cols: usize,
    eps: Option<f32>,
    to: &mut [f32],
) -> f32 {
    // SAFETY: by this function's contract.
    unsafe {
        let (to, vectors) = (to.as_mut_ptr(), cols.div_ceil(LANES));
        for k in 0..vectors {
            load_vector::<V, E>(source, k, cols).store(to.add(k * LANES));
        }
        let Some(eps) = eps else { return 1.0 };
        let factor = 1.0 / dot::<V>(to, to, cols).sqrt().max(eps);
        for k in 0..vectors {
            V::load(to.add(k * LANES))
                .mul(V::splat(factor))
                .store(to.add(k * LANES));
        }
        factor
    }
}

/// A row's gradient through its normalisation.
pub(super) struct ThroughNorm {
    /// The factor that the row was multiplied by.
    pub factor: f32,
    /// Lower bound on the norm; `None` if rows are not normalised.
    pub eps: Option<f32>,
    pub cols: usize,
    pub accumulate: bool,
}

impl ThroughNorm {
    /// `to (+)= (g - unit (unit . g)) * factor`, or `g * factor` for a row below eps or not normalised.
    ///
    /// # Safety
    /// `unit` and `gradient` hold whole vectors, `to` holds `cols` numbers; target features as for [`Simd`].
    #[inline(always)]
    pub unsafe fn apply<V: Simd>(&self, unit: *const f32, gradient: *const f32, to: *mut f32) {
        // SAFETY: by this function's contract.
        unsafe {
            let cols = self.cols;
            let along = match self.eps {
                Some(eps) if self.factor * eps < 1.0 => dot::<V>(unit, gradient, cols),
                _ => 0.0,
            };
            for k in 0..cols.div_ceil(LANES) {
                let g = V::load(gradient.add(k * LANES));
                let inside = V::load(unit.add(k * LANES)).fnma(V::splat(along), g);
                let mut out = inside.mul(V::splat(self.factor));
                if self.accumulate {
                    out = out.add(load_vector::<V, f32>(to, k, cols));
                }
                store_vector::<V, f32>(out, to, k, cols);
            }
        }
    }
}

impl UnitRows<'_> {
    /// The padded rows.
    pub fn view(&self) -> Mat {
        Mat::new(&self.rows, self.factors.len(), self.cols.next_multiple_of(LANES))
    }

    /// Gradient of row `i` of the table, from that of its unit row.
    ///
    /// # Safety
    /// `gradient` holds a padded row; no other task writes row `i` of `to`.
    #[inline(always)]
    pub unsafe fn row_through_norm<V: Simd>(&self, i: usize, gradient: *const f32, to: Grad) {
        let back = ThroughNorm {
            factor: self.factors[i],
            eps: self.normalize.then_some(self.eps),
            cols: self.cols,
            accumulate: to.accumulate,
        };
        // SAFETY: by this function's contract.
        unsafe { back.apply::<V>(self.view().row(i).as_ptr(), gradient, to.to.row(i).as_mut_ptr()) }
    }

    /// Gradient of all rows, `gradient` being padded like them.
    pub fn through_norm(&self, cx: &Ctx, gradient: Mat, to: Grad) {
        let count = self.factors.len();
        cx.pool.run(count.div_ceil(TILE), |task, _| {
            let from = task * TILE;
            let to_row = count.min(from + TILE);
            // SAFETY: tasks own disjoint rows; `isa` is this CPU's.
            unsafe {
                dispatch(
                    cx.isa,
                    Back {
                        rows: self,
                        gradient,
                        to,
                        range: (from, to_row),
                    },
                )
            };
        });
    }
}

struct Back<'a> {
    rows: &'a UnitRows<'a>,
    gradient: Mat,
    to: Grad,
    range: (usize, usize),
}

impl Kernel for Back<'_> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        for i in self.range.0..self.range.1 {
            // SAFETY: row `i` is this task's.
            unsafe {
                self.rows
                    .row_through_norm::<V>(i, self.gradient.row(i).as_ptr(), self.to)
            };
        }
    }
}
