//! Scores all items for all queries on the register tile, sixteen items at a time.
//!
//! Q queries, V items, D width. A task is a group of queries over a range of items: the group is packed once, then each
//! panel of sixteen items is packed and multiplied with all slivers of the group while in L1. A score is one chain of FMAs over
//! D, wherever its item lies in a panel, so equal rows have equal scores.

use crate::ctx::Ctx;
use crate::fault::{FaultKind, Outcome, fault};
use crate::gemm::{Tile, tile};
use crate::mat::Mat;
use crate::rows::{Element, Rows, load_vector};
use crate::shape::check_table;
use crate::simd::tile::{MR, NR};
use crate::simd::{Kernel, LANES, Simd, dispatch};
use crate::with_rows;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Queries of a group.
pub(super) const GROUP: usize = 16 * MR;
/// Few groups are cut into up to this many tasks by ranges of items.
const TASKS: usize = 32;

/// Sixteen scores of one query: of items `item..item + count`, the rest copies of the last one's.
pub(super) struct Scores {
    pub range: usize,
    pub query: usize,
    pub item: usize,
    pub count: usize,
    pub scores: [f32; NR],
}

/// Receives scores: within a range in ascending order of items, and those of a query from one task.
pub(super) trait Sink: Sync {
    /// Mark implementations `#[inline(always)]`.
    ///
    /// # Safety
    /// Target features as for [`Simd`].
    unsafe fn take<V: Simd>(&self, scores: &Scores);
}

pub(super) struct Scan {
    op: &'static str,
    queries: Mat, // [Q, D]
    table: Rows,  // [V, D]
    least_range: usize,
}

impl Scan {
    /// `least_range`: minimum length of item ranges, except for the last.
    pub fn new(op: &'static str, queries: Mat, table: Rows, least_range: usize) -> Outcome<Scan> {
        check_table(op, "table", table, queries.cols)?;
        Ok(Scan {
            op,
            queries,
            table,
            least_range,
        })
    }

    /// Number of ranges that the items are split into: a function of the sizes only.
    pub fn ranges(&self) -> usize {
        let groups = self.queries.rows.div_ceil(GROUP).max(1);
        (TASKS / groups)
            .min(self.table.rows().div_ceil(self.least_range))
            .max(1)
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
                let queries = GROUP.min(self.queries.rows - first);
                pack_queries(self.queries.row_range(first, queries), slivers);
                for item in (range * span..items.min((range + 1) * span)).step_by(NR) {
                    let ids: [usize; NR] = std::array::from_fn(|i| (item + i).min(items - 1));
                    with_rows!(Rows, self.table, table => dispatch(cx.isa, PackItems { table, ids, panel }));
                    let count = NR.min(items - item);
                    score(cx, depth, queries, slivers, panel, |q, rows| {
                        let (first, bad) = (first + q, &bad);
                        dispatch(
                            cx.isa,
                            Deliver {
                                sink,
                                range,
                                first,
                                item,
                                count,
                                rows,
                                bad,
                            },
                        );
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
                    score(cx, depth, count, slivers, panel, |sliver, rows| {
                        for (q, row) in (sliver..).zip(rows) {
                            if (part..part + NR).contains(&q) {
                                scores.range(first + q, 1)[0] = row[q - part];
                            }
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
                to[k * MR + r] = if q < queries.rows {
                    // SAFETY: `q` is a row of the view.
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

/// Calls `each(q, scores)` for every sliver of the group against one packed panel, q being its first query.
///
/// # Safety
/// `slivers` and `panel` are packed for `depth`.
unsafe fn score(
    cx: &Ctx,
    depth: usize,
    queries: usize,
    slivers: &[f32],
    panel: &[f32],
    mut each: impl FnMut(usize, &[[f32; NR]]),
) {
    let mut c = [[0.0f32; NR]; MR];
    for first in (0..queries).step_by(MR) {
        let (a, b) = (slivers[first * depth..].as_ptr(), panel.as_ptr());
        let (c_ptr, stride) = (c.as_mut_ptr().cast(), NR);
        // SAFETY: the caller's packing; `c` is a whole tile.
        unsafe {
            tile(
                cx.isa,
                &Tile {
                    k: depth,
                    a,
                    b,
                    c: c_ptr,
                    stride,
                    accumulate: false,
                },
            )
        };
        each(first, &c[..MR.min(queries - first)]);
    }
}

/// Passes a sliver's scores to the sink.
struct Deliver<'a, S> {
    sink: &'a S,
    range: usize,
    /// Query of the first row.
    first: usize,
    item: usize,
    count: usize,
    rows: &'a [[f32; NR]],
    /// The lowest query seen with a score that is not finite.
    bad: &'a AtomicUsize,
}

impl<S: Sink> Kernel for Deliver<'_, S> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        let Deliver {
            sink,
            range,
            item,
            count,
            ..
        } = self;
        for (query, scores) in (self.first..).zip(self.rows) {
            // SAFETY: called from a SIMD entry point; a row is two vectors.
            unsafe {
                // NaN once a score is NaN or infinite.
                let poison = V::load(scores.as_ptr()).mul(V::zero());
                let poison = V::load(scores.as_ptr().add(LANES)).fma(V::zero(), poison);
                if poison.sum().is_nan() {
                    self.bad.fetch_min(query, Ordering::Relaxed);
                }
                sink.take::<V>(&Scores {
                    range,
                    query,
                    item,
                    count,
                    scores: *scores,
                });
            }
        }
    }
}
