//! Counts the items that beat a score: those with a higher score, and those with an equal one and an index below a given
//! position. Excluded items do not count.
//!
//! With an item's own score and index this is its rank minus one. Counts over disjoint parts of a table add up to that of the
//! whole.

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

const OP: &str = "count_ahead";
const LEAST_RANGE: usize = 2048;

pub struct CountAhead<'a> {
    pub queries: Mat, // [Q, D]
    pub table: Rows,  // [V, D]
    /// The scores to beat.
    pub bars: &'a [f32], // [Q]
    /// Items before it, 0 to V, win a tie.
    pub places: &'a [i32], // [Q]
    pub excluded: Option<Excluded<'a>>,
    pub counts: &'a mut [i32], // [Q]
}

pub fn count_ahead(cx: &Ctx, args: CountAhead) -> Outcome {
    let scan = Scan::new(OP, args.queries, args.table, LEAST_RANGE)?;
    let (queries, items) = (args.queries.rows, args.table.rows());
    check_len(OP, "bars", args.bars.len(), queries)?;
    check_len(OP, "places", args.places.len(), queries)?;
    check_len(OP, "counts", args.counts.len(), queries)?;
    check_ids(OP, "places", args.places, items + 1, false)?;
    args.excluded.map_or(Ok(()), |lists| lists.check(OP, queries, items))?;
    let excluded = SortedLists::new(cx, args.excluded);
    let ranges = scan.ranges();
    let mut beaten = cx.scratch::<i32>(ranges * queries);
    let mut cursors = cx.scratch::<Cursor>(ranges * queries);
    beaten.fill(0);
    cursors.fill(Cursor::START);
    let count = Count {
        queries,
        places: args.places,
        bars: args.bars,
        beaten: Disjoint::new(&mut beaten),
        cursors: Disjoint::new(&mut cursors),
        excluded: &excluded,
    };
    scan.run(cx, &count)?;
    for (q, count) in args.counts.iter_mut().enumerate() {
        *count = (0..ranges).map(|range| beaten[range * queries + q]).sum();
    }
    Ok(())
}

/// Position in a query's exclusion list within a range.
#[repr(C)]
#[derive(Clone, Copy)]
struct Cursor {
    at: usize,
    /// The next id to exclude.
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
    places: &'a [i32],
    bars: &'a [f32],
    beaten: Disjoint<'a, i32>,
    cursors: Disjoint<'a, Cursor>,
    excluded: &'a SortedLists<'a>,
}

impl Sink for Count<'_> {
    #[inline(always)]
    unsafe fn take<V: Simd>(&self, s: &Scores) {
        let (place, bar) = (self.places[s.query], self.bars[s.query]);
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
                *beaten += (0..s.count).filter(|&i| beats(s, i, place, bar)).count() as i32;
            }
            let next = &mut self.cursors.range(slot, 1)[0];
            if next.id < (s.item + s.count) as i32 {
                *beaten -= self.skip(s, next, place, bar);
            }
        }
    }
}

fn beats(s: &Scores, i: usize, place: i32, bar: f32) -> bool {
    s.scores[i] > bar || (s.scores[i] == bar && ((s.item + i) as i32) < place)
}

impl Count<'_> {
    /// Moves the cursor past these items; returns how many excluded ones were counted.
    #[inline(never)]
    fn skip(&self, s: &Scores, cursor: &mut Cursor, place: i32, bar: f32) -> i32 {
        let excluded = self.excluded.of(s.query);
        if cursor.id == Cursor::START.id {
            cursor.at = excluded.partition_point(|&id| id < s.item as i32);
        }
        let end = (s.item + s.count) as i32;
        let mut counted = 0;
        while let Some(&id) = excluded.get(cursor.at).filter(|&&id| id < end) {
            let repeated = cursor.at > 0 && excluded[cursor.at - 1] == id;
            counted += i32::from(!repeated && beats(s, id as usize - s.item, place, bar));
            cursor.at += 1;
        }
        cursor.id = excluded.get(cursor.at).copied().unwrap_or(i32::MAX);
        counted
    }
}
