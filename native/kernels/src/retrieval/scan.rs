//! Scores of all items for all queries on the register tile, handed out sixteen items at a time.
//!
//! Q queries, V items, D width. A task is a group of queries over a range of items: the group is packed once, then each
//! panel of sixteen items is packed and met by all slivers of the group while in L1. A score is one chain of FMAs over
//! D, wherever its item lies in a panel, so equal rows have equal scores.

use crate::ctx::Ctx;
use crate::fault::{FaultKind, Outcome, fault};
use crate::gemm::{MR, NR, Tile, tile};
use crate::mat::Mat;
use crate::rows::{Element, Rows, load_vector};
use crate::simd::{Kernel, LANES, Simd, dispatch};
use crate::with_rows;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Queries of a group.
pub(super) const GROUP: usize = 16 * MR;
/// Few groups are cut into up to this many tasks by ranges of items, none shorter than `LEAST_RANGE`.
const TASKS: usize = 64;
const LEAST_RANGE: usize = 2048;

/// Takes the scores of items `item..item + scores.len()` for one query. Within a range items come in ascending order,
/// and a query's scores in a range come from one task.
pub(super) trait Sink: Sync {
    fn take(&self, range: usize, query: usize, item: usize, scores: &[f32]);
}

pub(super) struct Scan {
    pub op: &'static str,
    pub queries: Mat, // [Q, D]
    pub table: Rows,  // [V, D]
}

impl Scan {
    pub fn check(&self) -> Outcome {
        let (expected, got) = (self.queries.cols, self.table.cols());
        if expected == got {
            return Ok(());
        }
        Err(fault(
            FaultKind::Shape,
            self.op,
            "table",
            format!("[{}, {expected}]", self.table.rows()),
            format!("{got} columns"),
        ))
    }

    /// Into how many ranges the items are cut: a function of the sizes alone.
    pub fn ranges(&self) -> usize {
        let groups = self.queries.rows.div_ceil(GROUP).max(1);
        (TASKS / groups).min(self.table.rows().div_ceil(LEAST_RANGE)).max(1)
    }

    pub fn run(&self, cx: &Ctx, sink: &impl Sink) -> Outcome {
        let (groups, ranges, items) = (self.queries.rows.div_ceil(GROUP), self.ranges(), self.table.rows());
        let span = items.div_ceil(ranges).next_multiple_of(NR);
        let depth = self.queries.cols;
        let mut packed = cx.per_worker::<f32>((GROUP + NR) * depth);
        let packed = packed.slots();
        let bad = AtomicUsize::new(usize::MAX);
        cx.pool.run(groups * ranges, |task, worker| {
            let (group, range) = (task / ranges, task % ranges);
            // SAFETY: the slot is this worker's; `isa` is this CPU's.
            unsafe {
                let (slivers, panel) = packed.of(worker).split_at_mut(GROUP * depth);
                let first = group * GROUP;
                let count = GROUP.min(self.queries.rows - first);
                pack_queries(self.queries.row_range(first, count), slivers);
                for item in (range * span..items.min((range + 1) * span)).step_by(NR) {
                    let ids: [usize; NR] = std::array::from_fn(|i| (item + i).min(items - 1));
                    with_rows!(Rows, self.table, table => dispatch(cx.isa, PackItems { table, ids, panel }));
                    score(cx, depth, count, slivers, panel, |q, scores| {
                        if scores.iter().any(|score| !score.is_finite()) {
                            bad.fetch_min(first + q, Ordering::Relaxed);
                        }
                        sink.take(range, first + q, item, &scores[..NR.min(items - item)]);
                    });
                }
            }
        });
        match bad.into_inner() {
            usize::MAX => Ok(()),
            query => Err(fault(
                FaultKind::NotFinite,
                self.op,
                "queries or table",
                "finite scores",
                format!("query {query}"),
            )),
        }
    }

    /// `scores[q]` of item `targets[q]` for each query q, the same bits as the scan gives; items below 0 get 0.
    pub fn pairs(&self, cx: &Ctx, targets: &[i32], scores: &crate::mat::Disjoint<f32>) {
        let depth = self.queries.cols;
        let mut packed = cx.per_worker::<f32>((GROUP + NR) * depth);
        let packed = packed.slots();
        cx.pool.run(self.queries.rows.div_ceil(GROUP), |group, worker| {
            let first = group * GROUP;
            let count = GROUP.min(self.queries.rows - first);
            // SAFETY: the slot is this worker's; groups own disjoint queries.
            unsafe {
                let (slivers, panel) = packed.of(worker).split_at_mut(GROUP * depth);
                pack_queries(self.queries.row_range(first, count), slivers);
                for part in (0..count).step_by(NR) {
                    let ids = std::array::from_fn(|i| targets[first + (part + i).min(count - 1)].max(0) as usize);
                    with_rows!(Rows, self.table, table => dispatch(cx.isa, PackItems { table, ids, panel }));
                    score(cx, depth, count, slivers, panel, |q, row| {
                        if (part..part + NR).contains(&q) {
                            scores.range(first + q, 1)[0] = row[q - part];
                        }
                    });
                }
            }
        });
    }
}

/// Slivers of six queries, `[depth][6]` each, zero beyond the last.
fn pack_queries(queries: Mat, to: &mut [f32]) {
    for (sliver, to) in to.chunks_exact_mut(MR * queries.cols.max(1)).enumerate() {
        for r in 0..MR {
            let q = sliver * MR + r;
            for k in 0..queries.cols {
                // SAFETY: `q` is a row of the view.
                to[k * MR + r] = if q < queries.rows {
                    unsafe { queries.row(q)[k] }
                } else {
                    0.0
                };
            }
        }
    }
}

/// Sixteen rows as `[depth][16]`.
struct PackItems<'a, E> {
    table: Mat<E>,
    ids: [usize; NR],
    panel: &'a mut [f32],
}

impl<E: Element> Kernel for PackItems<'_, E> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        let cols = self.table.cols;
        for half in [0, LANES] {
            for k in 0..cols.div_ceil(LANES) {
                // SAFETY: ids are rows of the table; the panel holds `cols` lines of sixteen.
                unsafe {
                    let mut lanes = [V::zero(); LANES];
                    for (r, lane) in lanes.iter_mut().enumerate() {
                        *lane = load_vector::<V, E>(self.table.row(self.ids[half + r]).as_ptr(), k, cols);
                    }
                    let lines = V::transpose(lanes);
                    for (u, line) in lines.into_iter().enumerate().take(cols - k * LANES) {
                        line.store(self.panel.as_mut_ptr().add((k * LANES + u) * NR + half));
                    }
                }
            }
        }
    }
}

/// Calls `each(q, scores)` for the group's queries against one packed panel.
///
/// # Safety
/// `slivers` and `panel` are packed for `depth`.
unsafe fn score(
    cx: &Ctx,
    depth: usize,
    queries: usize,
    slivers: &[f32],
    panel: &[f32],
    mut each: impl FnMut(usize, &[f32; NR]),
) {
    let mut c = [[0.0f32; NR]; MR];
    for first in (0..queries).step_by(MR) {
        let (a, b) = (slivers[first * depth..].as_ptr(), panel.as_ptr());
        // SAFETY: the caller's packing; `c` is a whole tile.
        unsafe {
            tile(
                cx.isa,
                &Tile {
                    k: depth,
                    a,
                    b,
                    c: c.as_mut_ptr().cast(),
                    stride: NR,
                    accumulate: false,
                },
            )
        };
        for (r, scores) in c.iter().enumerate().take(queries - first) {
            each(first + r, scores);
        }
    }
}
