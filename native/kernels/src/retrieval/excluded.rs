//! Items to exclude from a query's ranking, in any order, repeats and -1 (no item) allowed.

use crate::arena::Lease;
use crate::ctx::Ctx;
use crate::fault::{Outcome, check_ids, check_offsets};
use crate::mat::Disjoint;
use crate::shape::check_len;

/// Queries whose lists one task sorts.
const TILE: usize = 64;

/// The lists of Q queries: `ids[offsets[q]..offsets[q + 1]]`.
#[derive(Clone, Copy)]
pub struct Excluded<'a> {
    pub offsets: &'a [i32], // [Q + 1]
    pub ids: &'a [i32],
}

impl Excluded<'_> {
    pub(super) fn check(&self, op: &'static str, queries: usize, items: usize) -> Outcome {
        check_offsets(op, self.offsets, self.ids.len())?;
        check_len(op, "excluded", self.offsets.len(), queries + 1)?;
        check_ids(op, "excluded", self.ids, items, true)
    }
}

/// The lists, each ascending.
pub(super) struct SortedLists<'a> {
    offsets: &'a [i32],
    ids: Lease<'a, i32>,
}

impl<'a> SortedLists<'a> {
    pub fn new(cx: &'a Ctx, lists: Option<Excluded<'a>>) -> SortedLists<'a> {
        let lists = lists.unwrap_or(Excluded {
            offsets: &[0],
            ids: &[],
        });
        let mut ids = cx.scratch::<i32>(lists.ids.len());
        ids.copy_from_slice(lists.ids);
        let offsets = lists.offsets;
        let queries = offsets.len() - 1;
        let all = Disjoint::new(&mut ids);
        cx.pool.run(queries.div_ceil(TILE), |task, _| {
            for q in task * TILE..queries.min((task + 1) * TILE) {
                let (from, to) = (offsets[q] as usize, offsets[q + 1] as usize);
                // SAFETY: the lists of different queries do not overlap.
                unsafe { all.range(from, to - from) }.sort_unstable();
            }
        });
        SortedLists { offsets, ids }
    }

    /// The list of query `q`; empty if none were given.
    pub fn of(&self, q: usize) -> &[i32] {
        match self.offsets.get(q..q + 2) {
            Some(bounds) => &self.ids[bounds[0] as usize..bounds[1] as usize],
            None => &[],
        }
    }
}
