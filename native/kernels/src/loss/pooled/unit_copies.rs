//! Rows of a pool and of the positives, normalised and laid out for products.

use crate::arena::Lease;
use crate::ctx::Ctx;
use crate::loss::Logit;
use crate::loss::fetched::Fetched;
use crate::loss::norm::unit_row;
use crate::mat::{Disjoint, Mat};
use crate::rows::{Element, Rows};
use crate::simd::{Kernel, LANES, Simd, dispatch};
use crate::with_rows;

/// Rows gathered by one task.
const TILE: usize = 64;

/// Source of the copies: plain rows, or fetched rows with their factors.
#[derive(Clone, Copy)]
pub(super) enum Copied<'a> {
    Rows(Rows, Logit),
    Fetched(Fetched<'a>),
}

/// (Normalised) copies of rows, padded to whole vectors; zeros for -1.
pub(super) fn unit_copies<'a>(cx: &'a Ctx, of: Copied, ids: &[i32]) -> Lease<'a, f32> {
    let (table, eps, factors) = match of {
        Copied::Rows(table, logit) => (table, logit.normalize_item.then_some(logit.eps), None),
        Copied::Fetched(Fetched { rows, factors, .. }) => (rows, None, Some(factors)),
    };
    let width = table.cols().next_multiple_of(LANES);
    let mut copies = cx.scratch::<f32>(ids.len() * width);
    {
        let copies = Disjoint::new(&mut copies);
        cx.pool.run(ids.len().div_ceil(TILE), |task, _| {
            let from = task * TILE;
            let ids = &ids[from..ids.len().min(from + TILE)];
            // SAFETY: tasks own disjoint copies; ids were checked.
            unsafe {
                let to = copies.range(from * width, ids.len() * width);
                with_rows!(Rows, table, table => dispatch(cx.isa, CopyUnits { table, ids, to, eps, factors }));
            }
        });
    }
    copies
}

struct CopyUnits<'a, E> {
    table: Mat<E>,
    ids: &'a [i32],
    to: &'a mut [f32],
    eps: Option<f32>,
    factors: Option<&'a [f32]>,
}

impl<E: Element> Kernel for CopyUnits<'_, E> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        let cols = self.table.cols;
        for (to, &id) in self.to.chunks_mut(cols.next_multiple_of(LANES)).zip(self.ids) {
            match usize::try_from(id) {
                // SAFETY: the row exists; its copy holds whole vectors.
                Ok(id) => unsafe {
                    unit_row::<V, E>(self.table.row(id).as_ptr(), cols, self.eps, to);
                    if let Some(factors) = self.factors {
                        to.iter_mut().for_each(|x| *x *= factors[id]);
                    }
                },
                Err(_) => to.fill(0.0),
            }
        }
    }
}
