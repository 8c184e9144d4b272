//! Exact rank of one item per query, over the whole catalogue: 1 + the number of items that beat it, where an item beats
//! it by a higher score, or by a lower id at the same score. Excluded items do not count.
//!
//! A target that is itself excluded cannot be found: its rank is V + 1. With a bonus the target competes with its score
//! plus the bonus; the scores of the others stay.

use super::excluded::{Excluded, SortedLists};
use super::scan::{Scan, Scores, Sink};
use crate::arena::Pod;
use crate::ctx::Ctx;
use crate::fault::{Outcome, check_ids};
use crate::mat::{Disjoint, Mat};
use crate::rows::Rows;
use crate::shape::check_len;
use crate::simd::tile::NR;
use crate::simd::{LANES, Simd};

const OP: &str = "target_rank";
const LEAST_RANGE: usize = 2048;

pub struct TargetRank<'a> {
    pub queries: Mat,       // [Q, D]
    pub table: Rows,        // [V, D]
    pub targets: &'a [i32], // [Q]
    pub excluded: Option<Excluded<'a>>,
    /// Added to the score of each target.
    pub bonus: Option<&'a [f32]>, // [Q]
    pub ranks: &'a mut [i32], // [Q]
}

pub fn target_rank(cx: &Ctx, args: TargetRank) -> Outcome {
    let scan = Scan {
        op: OP,
        queries: args.queries,
        table: args.table,
        least_range: LEAST_RANGE,
    };
    let (queries, items) = (args.queries.rows, args.table.rows());
    scan.check()?;
    check_len(OP, "targets", args.targets.len(), queries)?;
    check_len(OP, "ranks", args.ranks.len(), queries)?;
    check_ids(OP, "targets", args.targets, items, false)?;
    args.bonus
        .map_or(Ok(()), |bonus| check_len(OP, "bonus", bonus.len(), queries))?;
    args.excluded.map_or(Ok(()), |lists| lists.check(OP, queries, items))?;
    let excluded = SortedLists::new(cx, args.excluded);
    let mut targets = cx.scratch::<f32>(queries);
    scan.pairs(cx, args.targets, &Disjoint::new(&mut targets));
    let mut bars = cx.scratch::<f32>(queries);
    for (q, bar) in bars.iter_mut().enumerate() {
        *bar = targets[q] + args.bonus.map_or(0.0, |bonus| bonus[q]);
    }
    let ranges = scan.ranges();
    let mut beaten = cx.scratch::<i32>(ranges * queries);
    let mut cursors = cx.scratch::<Cursor>(ranges * queries);
    beaten.fill(0);
    cursors.fill(Cursor::START);
    let count = Count {
        queries,
        ids: args.targets,
        scores: &bars,
        beaten: Disjoint::new(&mut beaten),
        cursors: Disjoint::new(&mut cursors),
        excluded: &excluded,
    };
    scan.run(cx, &count)?;
    for (q, rank) in args.ranks.iter_mut().enumerate() {
        *rank = match excluded.of(q).binary_search(&args.targets[q]) {
            Ok(_) => items as i32 + 1,
            // A target whose bonus is negative beats itself once.
            Err(_) => {
                let ahead = (0..ranges).map(|range| beaten[range * queries + q]).sum::<i32>();
                1 + ahead - i32::from(targets[q] > bars[q])
            }
        };
    }
    Ok(())
}

/// Where a query's excluded list stands in a range.
#[repr(C)]
#[derive(Clone, Copy)]
struct Cursor {
    at: usize,
    /// The next id to leave out.
    id: i32,
    _pad: i32,
}

impl Cursor {
    /// Before the range's first item.
    const START: Cursor = Cursor { at: 0, id: -1, _pad: 0 };
}

// SAFETY: plain numbers without padding bytes.
unsafe impl Pod for Cursor {}

struct Count<'a> {
    queries: usize,
    ids: &'a [i32],
    scores: &'a [f32],
    beaten: Disjoint<'a, i32>,
    cursors: Disjoint<'a, Cursor>,
    excluded: &'a SortedLists<'a>,
}

impl Sink for Count<'_> {
    #[inline(always)]
    unsafe fn take<V: Simd>(&self, s: &Scores) {
        let (target, bar) = (self.ids[s.query], self.scores[s.query]);
        let slot = s.range * self.queries + s.query;
        // SAFETY: a query's scores in a range come from one task; sixteen scores are two vectors.
        unsafe {
            let beaten = &mut self.beaten.range(slot, 1)[0];
            let (mut above, mut below) = (V::zero(), V::zero());
            for at in [0, LANES] {
                let lead = V::load(s.scores.as_ptr().add(at)).sub(V::splat(bar));
                above = above.add(V::splat(1.0).where_positive(lead));
                below = below.add(V::splat(1.0).where_positive(V::zero().sub(lead)));
            }
            if s.count == NR && above.add(below).sum() == NR as f32 {
                *beaten += above.sum() as i32;
            } else {
                // A tie, or the last few items.
                *beaten += (0..s.count).filter(|&i| beats(s, i, target, bar)).count() as i32;
            }
            let next = &mut self.cursors.range(slot, 1)[0];
            if next.id < (s.item + s.count) as i32 {
                *beaten -= self.skip(s, next, target, bar);
            }
        }
    }
}

fn beats(s: &Scores, i: usize, target: i32, bar: f32) -> bool {
    s.scores[i] > bar || (s.scores[i] == bar && ((s.item + i) as i32) < target)
}

impl Count<'_> {
    /// Moves the cursor past these items; returns how many excluded ones were counted.
    #[inline(never)]
    fn skip(&self, s: &Scores, cursor: &mut Cursor, target: i32, bar: f32) -> i32 {
        let excluded = self.excluded.of(s.query);
        if cursor.id == Cursor::START.id {
            cursor.at = excluded.partition_point(|&id| id < s.item as i32);
        }
        let end = (s.item + s.count) as i32;
        let mut counted = 0;
        while let Some(&id) = excluded.get(cursor.at).filter(|&&id| id < end) {
            let repeated = cursor.at > 0 && excluded[cursor.at - 1] == id;
            counted += i32::from(!repeated && beats(s, id as usize - s.item, target, bar));
            cursor.at += 1;
        }
        cursor.id = excluded.get(cursor.at).copied().unwrap_or(i32::MAX);
        counted
    }
}
