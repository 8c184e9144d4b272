//! Exact rank of one item a query, over the whole catalogue: 1 + the number of items that beat it, where an item beats
//! it by a higher score, or by a lower id at the same score. Excluded items do not count.
//!
//! A target that is itself excluded cannot be found: its rank is V + 1.

use super::excluded::{Excluded, SortedLists};
use super::scan::{Scan, Sink};
use crate::ctx::Ctx;
use crate::fault::{FaultKind, Outcome, check_ids, fault};
use crate::mat::{Disjoint, Mat};
use crate::rows::Rows;

const OP: &str = "target_rank";

pub struct TargetRank<'a> {
    pub queries: Mat,       // [Q, D]
    pub table: Rows,        // [V, D]
    pub targets: &'a [i32], // [Q]
    pub excluded: Option<Excluded<'a>>,
    pub ranks: &'a mut [i32], // [Q]
}

pub fn target_rank(cx: &Ctx, args: TargetRank) -> Outcome {
    let scan = Scan {
        op: OP,
        queries: args.queries,
        table: args.table,
    };
    let (queries, items) = (args.queries.rows, args.table.rows());
    scan.check()?;
    for (input, got) in [("targets", args.targets.len()), ("ranks", args.ranks.len())] {
        if got != queries {
            return Err(fault(
                FaultKind::Shape,
                OP,
                input,
                format!("{queries} entries"),
                format!("{got}"),
            ));
        }
    }
    check_ids(OP, "targets", args.targets, items, false)?;
    args.excluded.map_or(Ok(()), |lists| lists.check(OP, queries, items))?;
    let excluded = SortedLists::new(cx, args.excluded);
    let mut targets = cx.scratch::<f32>(queries);
    scan.pairs(cx, args.targets, &Disjoint::new(&mut targets));
    let ranges = scan.ranges();
    let mut beaten = cx.scratch::<i32>(ranges * queries);
    let mut cursors = cx.scratch::<usize>(ranges * queries);
    beaten.fill(0);
    cursors.fill(usize::MAX);
    let count = Count {
        queries,
        ids: args.targets,
        scores: &targets,
        beaten: Disjoint::new(&mut beaten),
        cursors: Disjoint::new(&mut cursors),
        excluded: &excluded,
    };
    scan.run(cx, &count)?;
    for (q, rank) in args.ranks.iter_mut().enumerate() {
        *rank = match excluded.of(q).binary_search(&args.targets[q]) {
            Ok(_) => items as i32 + 1,
            Err(_) => 1 + (0..ranges).map(|range| beaten[range * queries + q]).sum::<i32>(),
        };
    }
    Ok(())
}

struct Count<'a> {
    queries: usize,
    ids: &'a [i32],
    scores: &'a [f32],
    beaten: Disjoint<'a, i32>,
    /// Where the query's excluded list stands, one a (range, query); `usize::MAX` before the range's first item.
    cursors: Disjoint<'a, usize>,
    excluded: &'a SortedLists<'a>,
}

impl Sink for Count<'_> {
    fn take(&self, range: usize, query: usize, item: usize, scores: &[f32]) {
        let (target, bar) = (self.ids[query], self.scores[query]);
        let slot = range * self.queries + query;
        // SAFETY: a query's scores in a range come from one task.
        let (beaten, cursor) = unsafe { (&mut self.beaten.range(slot, 1)[0], &mut self.cursors.range(slot, 1)[0]) };
        let beats = |i: usize| scores[i] > bar || (scores[i] == bar && ((item + i) as i32) < target);
        *beaten += (0..scores.len()).map(|i| i32::from(beats(i))).sum::<i32>();
        let excluded = self.excluded.of(query);
        if *cursor == usize::MAX {
            *cursor = excluded.partition_point(|&id| id < item as i32);
        }
        while let Some(&id) = excluded.get(*cursor).filter(|&&id| (id as usize) < item + scores.len()) {
            let repeated = *cursor > 0 && excluded[*cursor - 1] == id;
            *beaten -= i32::from(!repeated && beats(id as usize - item));
            *cursor += 1;
        }
    }
}
