//! The k best items of each query: highest score first, equal scores by the lower id.
//!
//! Each range of items keeps a heap of k candidates per query, worst at the root; heaps of several ranges are merged.

use super::excluded::{Excluded, SortedLists};
use super::scan::{Scan, Scores, Sink};
use crate::ctx::Ctx;
use crate::fault::Outcome;
use crate::mat::{Disjoint, Mat, MatMut};
use crate::rows::Rows;
use crate::shape::check_mut;
use crate::simd::{LANES, Simd};

const OP: &str = "top_k";
const LEAST_RANGE: usize = 2048;
/// Minimum items of a range per heap entry: filling a heap costs more than scoring its items.
const ITEMS_PER_PLACE: usize = 64;
/// Queries merged by one task.
const TILE: usize = 16;

pub struct TopK<'a> {
    pub queries: Mat, // [Q, D]
    pub table: Rows,  // [V, D]
    pub excluded: Option<Excluded<'a>>,
    /// Where a query has fewer than k items left: -1, with a score of -inf.
    pub ids: MatMut<i32>, // [Q, k]
    pub scores: MatMut, // [Q, k]
}

pub fn top_k(cx: &Ctx, args: TopK) -> Outcome {
    let (queries, k) = (args.queries.rows, args.ids.cols);
    let scan = Scan::new(OP, args.queries, args.table, LEAST_RANGE.max(ITEMS_PER_PLACE * k))?;
    check_mut(OP, "ids", args.ids, queries, k)?;
    check_mut(OP, "scores", args.scores, queries, k)?;
    args.excluded
        .map_or(Ok(()), |lists| lists.check(OP, queries, args.table.rows()))?;
    let excluded = SortedLists::new(cx, args.excluded);
    let ranges = scan.ranges();
    let slots = ranges * queries;
    let (mut ids, mut scores) = (cx.scratch::<i32>(slots * k), cx.scratch::<f32>(slots * k));
    let mut counts = cx.scratch::<usize>(slots);
    counts.fill(0);
    let mut bars = cx.scratch::<f32>(slots);
    bars.fill(f32::NEG_INFINITY);
    let best = Best {
        queries,
        k,
        ids: Disjoint::new(&mut ids),
        scores: Disjoint::new(&mut scores),
        counts: Disjoint::new(&mut counts),
        bars: Disjoint::new(&mut bars),
        excluded: &excluded,
    };
    if k > 0 {
        scan.run(cx, &best)?;
    }
    cx.pool.run(queries.div_ceil(TILE), |task, _| {
        for q in task * TILE..queries.min((task + 1) * TILE) {
            // SAFETY: tasks own disjoint queries, and the scan is over.
            unsafe {
                let mut heap = best.heap(0, q);
                for range in 1..ranges {
                    let other = best.heap(range, q);
                    for i in 0..*other.count {
                        heap.offer(other.scores[i], other.ids[i]);
                    }
                }
                heap.drain_sorted(args.ids.row(q), args.scores.row(q));
            }
        }
    });
    Ok(())
}

struct Best<'a> {
    queries: usize,
    k: usize,
    ids: Disjoint<'a, i32>,
    scores: Disjoint<'a, f32>,
    counts: Disjoint<'a, usize>,
    /// Threshold that a score must exceed.
    bars: Disjoint<'a, f32>,
    excluded: &'a SortedLists<'a>,
}

impl<'a> Best<'a> {
    /// # Safety
    /// One task at a time has the heap of a (range, query).
    unsafe fn heap(&self, range: usize, query: usize) -> Heap<'a> {
        let slot = range * self.queries + query;
        // SAFETY: by this function's contract.
        unsafe {
            Heap {
                ids: self.ids.range(slot * self.k, self.k),
                scores: self.scores.range(slot * self.k, self.k),
                count: &mut self.counts.range(slot, 1)[0],
            }
        }
    }
}

impl Sink for Best<'_> {
    #[inline(always)]
    unsafe fn take<V: Simd>(&self, s: &Scores) {
        // SAFETY: a query's scores in a range come from one task; sixteen scores are two vectors.
        unsafe {
            let bar = &mut self.bars.range(s.range * self.queries + s.query, 1)[0];
            let best = V::load(s.scores.as_ptr()).max(V::load(s.scores.as_ptr().add(LANES)));
            // Once the heap is full a later item needs a strictly higher score, for its id is higher.
            if best.lanes_max() > *bar {
                *bar = self.offer(s);
            }
        }
    }
}

impl Best<'_> {
    /// Offers each score to the query's heap; returns the new threshold.
    ///
    /// # Safety
    /// As [`Best::heap`].
    #[inline(never)]
    unsafe fn offer(&self, s: &Scores) -> f32 {
        // SAFETY: by this function's contract.
        let mut heap = unsafe { self.heap(s.range, s.query) };
        let excluded = self.excluded.of(s.query);
        for (id, &score) in (s.item as i32..).zip(&s.scores[..s.count]) {
            if heap.admits(score, id) && excluded.binary_search(&id).is_err() {
                heap.offer(score, id);
            }
        }
        if *heap.count == self.k {
            heap.scores[0]
        } else {
            f32::NEG_INFINITY
        }
    }
}

/// A binary heap in two slices with the worst candidate at the root.
struct Heap<'a> {
    ids: &'a mut [i32],
    scores: &'a mut [f32],
    count: &'a mut usize,
}

impl Heap<'_> {
    fn worse(&self, a: usize, b: usize) -> bool {
        self.scores[a] < self.scores[b] || (self.scores[a] == self.scores[b] && self.ids[a] > self.ids[b])
    }

    fn admits(&self, score: f32, id: i32) -> bool {
        *self.count < self.ids.len() || score > self.scores[0] || (score == self.scores[0] && id < self.ids[0])
    }

    fn offer(&mut self, score: f32, id: i32) {
        if !self.admits(score, id) {
            return;
        }
        if *self.count < self.ids.len() {
            let mut at = *self.count;
            *self.count += 1;
            (self.scores[at], self.ids[at]) = (score, id);
            while at > 0 && self.worse(at, (at - 1) / 2) {
                self.swap(at, (at - 1) / 2);
                at = (at - 1) / 2;
            }
        } else {
            (self.scores[0], self.ids[0]) = (score, id);
            self.sink(*self.count);
        }
    }

    /// Restores the order below the root among the first `count`.
    fn sink(&mut self, count: usize) {
        let mut at = 0;
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            let mut worst = at;
            if left < count && self.worse(left, worst) {
                worst = left;
            }
            if right < count && self.worse(right, worst) {
                worst = right;
            }
            if worst == at {
                return;
            }
            self.swap(at, worst);
            at = worst;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.ids.swap(a, b);
        self.scores.swap(a, b);
    }

    /// Writes the candidates, best first, padded with "none".
    fn drain_sorted(mut self, ids: &mut [i32], scores: &mut [f32]) {
        ids.fill(-1);
        scores.fill(f32::NEG_INFINITY);
        for left in (0..*self.count).rev() {
            (ids[left], scores[left]) = (self.ids[0], self.scores[0]);
            self.swap(0, left);
            self.sink(left);
        }
    }
}
