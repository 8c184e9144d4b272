//! Stages table rows for one batch: the distinct rows that it reads (`unique_ids`), and a copy of them (`stage_rows`), f32 or
//! FP16. Ops then read the copy by position instead of by id.
//!
//! V rows of the table, U capacity in rows, D width.

use crate::ctx::Ctx;
use crate::fault::{FaultKind, Outcome, fault};
use crate::mat::{Mat, MatMut};
use crate::rows::{Element, Rows, RowsMut, load_vector, store_vector};
use crate::shape::{check_id_mat, check_mut, check_table};
use crate::simd::{Kernel, LANES, Simd, dispatch};
use crate::with_rows;
use std::sync::atomic::{AtomicU64, Ordering};

use super::contribution::check_ascending;

/// Id lists that one call can take.
pub const MAX_ID_LISTS: usize = 8;
/// Ids, and rows, of one task.
const TILE: usize = 4096;
const ROW_TILE: usize = 256;
const BITS: usize = u64::BITS as usize;

/// Ids of rows, and the output for their positions.
#[derive(Clone, Copy)]
pub struct IdList {
    /// -1 stays -1.
    pub ids: Mat<i32>, // [rows, per]
    pub places: MatMut<i32>, // [rows, per]
}

/// Writes the different ids of all lists to `to`, ascending, padded with -1, and each id's place in it.
/// A set of V bits instead of a sort: the cost is V / 64 and a look-up per id.
pub fn unique_ids(cx: &Ctx, lists: &[IdList], vocabulary: usize, to: &mut [i32]) -> Outcome {
    unique("unique_ids", cx, lists, vocabulary, to).map(|_| ())
}

/// [`unique_ids`] on behalf of another op; returns how many different ids there are.
pub(super) fn unique(
    op: &'static str,
    cx: &Ctx,
    lists: &[IdList],
    vocabulary: usize,
    to: &mut [i32],
) -> Outcome<usize> {
    for list in lists {
        check_id_mat(op, "ids", list.ids, vocabulary)?;
        check_mut(op, "places", list.places, list.ids.rows, list.ids.cols)?;
    }
    let words = vocabulary.div_ceil(BITS);
    let mut set = cx.scratch::<u64>(words);
    set.fill(0);
    for list in lists {
        let set = shared(&mut set);
        for_each_tile(cx, list, |ids, _| {
            for &id in ids.iter().filter(|id| **id >= 0) {
                let (word, bit) = (id as usize / BITS, 1 << (id as usize % BITS));
                // Setting bits commutes, so the set does not depend on the order.
                if set[word].load(Ordering::Relaxed) & bit == 0 {
                    set[word].fetch_or(bit, Ordering::Relaxed);
                }
            }
        });
    }
    let mut before = cx.scratch::<u32>(words);
    let mut count = 0;
    for (word, before) in set.iter().zip(before.iter_mut()) {
        *before = count;
        count += word.count_ones();
    }
    if count as usize > to.len() {
        let (expected, got) = (format!("room for {count} ids"), format!("for {}", to.len()));
        return Err(fault(FaultKind::Shape, op, "to", expected, got));
    }
    let mut place = 0;
    for (at, &word) in set.iter().enumerate() {
        let mut left = word;
        while left != 0 {
            to[place] = (at * BITS) as i32 + left.trailing_zeros() as i32;
            place += 1;
            left &= left - 1;
        }
    }
    to[place..].fill(-1);
    let (set, before) = (&set[..], &before[..]);
    for list in lists {
        for_each_tile(cx, list, |ids, places| {
            for (place, &id) in places.iter_mut().zip(ids) {
                *place = usize::try_from(id).map_or(-1, |id| {
                    let below = set[id / BITS] & ((1 << (id % BITS)) - 1);
                    (before[id / BITS] + below.count_ones()) as i32
                });
            }
        });
    }
    Ok(place)
}

/// The words as atomics, for tasks that set bits concurrently.
fn shared(words: &mut [u64]) -> &[AtomicU64] {
    // SAFETY: same size and alignment; the exclusive borrow becomes a shared one of atomics.
    unsafe { std::slice::from_raw_parts(words.as_mut_ptr().cast(), words.len()) }
}

/// Rows of ids and of places, a tile to a task.
fn for_each_tile(cx: &Ctx, list: &IdList, each: impl Fn(&[i32], &mut [i32]) + Sync) {
    let per_task = (TILE / list.ids.cols.max(1)).max(1);
    let (ids, places) = (list.ids, list.places);
    cx.pool.run(ids.rows.div_ceil(per_task), |task, _| {
        for row in task * per_task..ids.rows.min((task + 1) * per_task) {
            // SAFETY: tasks own disjoint rows; both views have the row.
            unsafe { each(ids.row(row), places.row(row)) };
        }
    });
}

/// `to[place] = table[ids[place]]` up to the last id; the rows beyond are unchanged.
pub fn stage_rows(cx: &Ctx, table: Rows, ids: &[i32], to: RowsMut) -> Outcome {
    let op = "stage_rows";
    let cols = table.cols();
    check_table(op, "table", table, cols)?;
    with_rows!(RowsMut, to, to => check_mut(op, "to", to, ids.len(), cols))?;
    let count = check_ascending(op, "ids", ids, table.rows())?;
    copy_rows_of(cx, table, &ids[..count], to);
    Ok(())
}

/// `to[place] = table[ids[place]]`; ids are rows of the table, and `to` has room for them.
pub(super) fn copy_rows_of(cx: &Ctx, table: Rows, ids: &[i32], to: RowsMut) {
    cx.pool.run(ids.len().div_ceil(ROW_TILE), |task, _| {
        let from = task * ROW_TILE;
        let ids = &ids[from..ids.len().min(from + ROW_TILE)];
        // SAFETY: tasks own disjoint rows of `to`; the caller's word for the ids.
        with_rows!(Rows, table, table => with_rows!(RowsMut, to, to => unsafe {
            dispatch(cx.isa, CopyRows { table, ids, from, to })
        }));
    });
}

struct CopyRows<'a, E, F> {
    table: Mat<E>,
    ids: &'a [i32],
    from: usize,
    to: MatMut<F>,
}

impl<E: Element, F: Element> Kernel for CopyRows<'_, E, F> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        let cols = self.table.cols;
        for (i, &id) in self.ids.iter().enumerate() {
            // SAFETY: ids are rows of the table; row `from + i` is this task's.
            unsafe {
                let from = self.table.row(id as usize).as_ptr();
                let to = self.to.row(self.from + i).as_mut_ptr();
                for k in 0..cols.div_ceil(LANES) {
                    store_vector::<V, F>(load_vector::<V, E>(from, k, cols), to, k, cols);
                }
            }
        }
    }
}
