//! Scores all items for all queries on the register tile, sixteen items at a time.
//!
//! Q queries, V items, D width. A task is a group of queries over a range of items: the group is packed once, then each
//! panel of sixteen items, or pair of panels, is packed and multiplied with all slivers of the group while in L1. A score is one chain of FMAs over
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
        let tiles = cx.isa.tiles();
        let mut packed = cx.per_worker::<f32>((GROUP + tiles * NR) * depth);
        let packed = packed.slots();
        let bad = AtomicUsize::new(usize::MAX);
        cx.pool.run(groups * ranges, |task, worker| {
            let (group, range) = (task / ranges, task % ranges);
            // SAFETY: the slot is this worker's; `isa` is this CPU's.
            unsafe {
                let (slivers, panels) = packed.of(worker).split_at_mut(GROUP * depth);
                let first = group * GROUP;
                let queries = GROUP.min(self.queries.rows - first);
                pack_queries(self.queries.row_range(first, queries), slivers);
                let until = items.min((range + 1) * span);
                for from in (range * span..until).step_by(tiles * NR) {
                    let wide = if tiles == 2 && until - from > NR { 2 * NR } else { NR };
                    let panels = &mut panels[..wide * depth];
                    for (item, panel) in (from..).step_by(NR).zip(panels.chunks_exact_mut(NR * depth)) {
                        let ids: [usize; NR] = std::array::from_fn(|i| (item + i).min(items - 1));
                        with_rows!(Rows, self.table, table => dispatch(cx.isa, PackItems { table, ids, panel }));
                    }
                    let item = from;
                    score(cx, depth, queries, slivers, panels, |q, scores| {
                        let (first, bad) = (first + q, &bad);
                        dispatch(
                            cx.isa,
                            Deliver {
                                sink,
                                range,
                                first,
                                item,
                                items,
                                scores,
                                wide,
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
                        for (q, row) in (sliver..).zip(rows.chunks_exact(NR)) {
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

/// Calls `each(q, scores)` for every sliver of the group against one packed panel or two, q being the sliver's first query. A query
/// has sixteen scores per panel.
///
/// # Safety
/// `slivers` and `panels` are packed for `depth`.
unsafe fn score(
    cx: &Ctx,
    depth: usize,
    queries: usize,
    slivers: &[f32],
    panels: &[f32],
    each: impl FnMut(usize, &[f32]),
) {
    // SAFETY: by this function's contract.
    unsafe {
        match panels.len() > NR * depth {
            true => score_panels::<2>(cx, depth, queries, slivers, panels, each),
            false => score_panels::<1>(cx, depth, queries, slivers, panels, each),
        }
    }
}

/// # Safety
/// As [`score`], with `W` panels.
unsafe fn score_panels<const W: usize>(
    cx: &Ctx,
    depth: usize,
    queries: usize,
    slivers: &[f32],
    panels: &[f32],
    mut each: impl FnMut(usize, &[f32]),
) {
    let mut scores = [[[0.0f32; NR]; W]; MR];
    for first in (0..queries).step_by(MR) {
        let part = Tile::<W> {
            k: depth,
            a: slivers[first * depth..].as_ptr(),
            b: std::array::from_fn(|w| panels[w * NR * depth..].as_ptr()),
            c: scores.as_mut_ptr().cast(),
            stride: W * NR,
            accumulate: false,
        };
        // SAFETY: the caller's packing; `scores` has room for the tiles.
        unsafe { tile(cx.isa, part) };
        let rows = MR.min(queries - first);
        each(first, scores[..rows].as_flattened().as_flattened());
    }
}

/// Passes a sliver's scores to the sink.
struct Deliver<'a, S> {
    sink: &'a S,
    range: usize,
    /// Query of the first row.
    first: usize,
    /// Item of the first column, and number of all items.
    item: usize,
    items: usize,
    /// Rows of `wide` scores.
    scores: &'a [f32],
    wide: usize,
    /// The lowest query seen with a score that is not finite.
    bad: &'a AtomicUsize,
}

impl<S: Sink> Kernel for Deliver<'_, S> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        for (query, scores) in (self.first..).zip(self.scores.chunks_exact(self.wide)) {
            let (panels, _) = scores.as_chunks::<NR>();
            for (item, scores) in (self.item..).step_by(NR).zip(panels) {
                // SAFETY: called from a SIMD entry point; a panel's scores are two vectors.
                unsafe {
                    // NaN once a score is NaN or infinite.
                    let poison = V::load(scores.as_ptr()).mul(V::zero());
                    let poison = V::load(scores.as_ptr().add(LANES)).fma(V::zero(), poison);
                    if poison.sum().is_nan() {
                        self.bad.fetch_min(query, Ordering::Relaxed);
                    }
                    self.sink.take::<V>(&Scores {
                        range: self.range,
                        query,
                        item,
                        count: NR.min(self.items - item),
                        scores: *scores,
                    });
                }
            }
        }
    }
}
