//! Gradient rows that are already summed, one per id: each is passed directly to the rule.

use super::apply::Rule;
use super::sums::total;
use crate::ctx::Ctx;
use crate::exact_sum::ExactSum;
use crate::mat::{Disjoint, Mat};
use crate::rows::load_vector;
use crate::simd::{Kernel, LANES, Simd, dispatch};

/// Rows of one task.
const TILE: usize = 1024;

/// Applies rows `0..count`. Returns the sum of squares, if the rule forms it.
pub(super) fn apply(cx: &Ctx, rule: &Rule, rows: Mat, ids: Option<&[i32]>, count: usize) -> ExactSum {
    let tiles = count.div_ceil(TILE);
    let mut squares = cx.scratch::<ExactSum>(tiles);
    let mut buffers = cx.per_worker::<f32>(rows.cols.next_multiple_of(LANES));
    {
        let (buffers, squares) = (buffers.slots(), Disjoint::new(&mut squares));
        cx.pool.run(tiles, |task, worker| {
            let from = task * TILE;
            // SAFETY: ids are distinct, so tasks have different rows; each worker has its own buffer while it runs a task.
            unsafe {
                let (buffer, square) = (buffers.of(worker), &mut squares.range(task, 1)[0]);
                let to = count.min(from + TILE);
                dispatch(
                    cx.isa,
                    ApplyRows {
                        rule,
                        rows,
                        ids,
                        range: (from, to),
                        buffer,
                        square,
                    },
                );
            }
        });
    }
    total(&squares)
}

struct ApplyRows<'a> {
    rule: &'a Rule<'a>,
    rows: Mat,
    ids: Option<&'a [i32]>,
    range: (usize, usize),
    /// A padded row.
    buffer: &'a mut [f32],
    square: &'a mut ExactSum,
}

impl Kernel for ApplyRows<'_> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        let cols = self.rows.cols;
        *self.square = ExactSum::ZERO;
        for i in self.range.0..self.range.1 {
            // SAFETY: row `i` exists and its id was checked; this task alone has it.
            unsafe {
                let row = self.rows.row(i).as_ptr();
                for k in 0..cols.div_ceil(LANES) {
                    let to = self.buffer.as_mut_ptr().add(k * LANES);
                    V::zero().add(load_vector::<V, f32>(row, k, cols)).store(to);
                }
                let id = self.ids.map_or(i, |ids| ids[i] as usize);
                self.square.add(self.rule.apply::<V>(id, i, self.buffer.as_ptr(), cols));
            }
        }
    }
}
