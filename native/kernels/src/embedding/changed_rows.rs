//! Rows that were requested before an update changed them: finding them (`changed_rows`), counting them (`count_changed`), and
//! writing their new values (`put_rows`).
//!
//! Requests come in parts, one per sender, each ascending. Row lists: ascending ids, padded with -1.

use super::contribution::{check_ascending, live};
use crate::ctx::Ctx;
use crate::fault::{FaultKind, Outcome, fault};
use crate::rows::{Rows, RowsMut, load_vector, store_vector};
use crate::shape::{check_len, check_table};
use crate::simd::{Kernel, LANES, Simd, dispatch};
use crate::with_rows;

/// Lists that one call of `count_changed` can take.
pub const MAX_CHANGED: usize = 4;
const ROW_TILE: usize = 256;

/// Ids requested by several senders.
#[derive(Clone, Copy)]
pub struct Requests<'a> {
    pub ids: &'a [i32],
    /// Counts per sender.
    pub counts: &'a [i64],
}

impl<'a> Requests<'a> {
    fn parts(self, op: &'static str) -> Outcome<impl Iterator<Item = &'a [i32]>> {
        let sum: i64 = self.counts.iter().sum();
        if self.counts.iter().any(|count| *count < 0) || sum > self.ids.len() as i64 {
            let expected = format!("counts of at most {} ids", self.ids.len());
            return Err(fault(FaultKind::Range, op, "counts", expected, format!("{sum}")));
        }
        let mut rest = self.ids;
        Ok(self.counts.iter().map(move |count| {
            let (part, after) = rest.split_at(*count as usize);
            rest = after;
            part
        }))
    }
}

pub struct Changed<'a> {
    /// Positions in the sender's part.
    pub at: &'a mut [i32],
    /// The row: its index in the list if `by_list`, otherwise its id.
    pub from: &'a mut [i32],
    /// Counts per sender.
    pub counts: &'a mut [i64],
}

/// The requests whose rows are in `list`, sender by sender.
pub fn changed_rows(requests: Requests, list: &[i32], by_list: bool, to: Changed) -> Outcome {
    let op = "changed_rows";
    let list = &list[..check_ascending(op, "list", list, i32::MAX as usize)?];
    check_len(op, "counts", to.counts.len(), requests.counts.len())?;
    let room = to.at.len().min(to.from.len());
    let mut count = 0;
    for (part, found) in requests.parts(op)?.zip(to.counts.iter_mut()) {
        let before = count;
        let mut l = 0;
        for (at, id) in part.iter().enumerate() {
            while l < list.len() && list[l] < *id {
                l += 1;
            }
            if list.get(l) != Some(id) {
                continue;
            }
            if count == room {
                return Err(fault(
                    FaultKind::Shape,
                    op,
                    "to",
                    "room for all of them",
                    format!("for {room}"),
                ));
            }
            to.at[count] = at as i32;
            to.from[count] = if by_list { l as i32 } else { *id };
            count += 1;
        }
        *found = (count - before) as i64;
    }
    Ok(())
}

/// Adds to `to` the number of requested rows, and how many of them are in any of the lists.
pub fn count_changed(requests: Requests, lists: &[&[i32]], to: &mut [i64]) -> Outcome {
    let op = "count_changed";
    check_len(op, "to", to.len(), 2)?;
    for list in lists {
        check_ascending(op, "list", list, i32::MAX as usize)?;
    }
    for part in requests.parts(op)? {
        let mut next = [0; MAX_CHANGED];
        to[0] += part.len() as i64;
        for id in part {
            let mut changed = false;
            for (list, next) in lists.iter().zip(&mut next) {
                let list = &list[..live(list)];
                while *next < list.len() && list[*next] < *id {
                    *next += 1;
                }
                changed |= list.get(*next) == Some(id);
            }
            to[1] += i64::from(changed);
        }
    }
    Ok(())
}

/// Destination of rows that were received in parts.
#[derive(Clone, Copy)]
pub struct Places<'a> {
    /// Positions within the part.
    pub at: &'a [i32],
    /// Rows of each part.
    pub counts: &'a [i64],
    /// Lengths of the destination parts.
    pub parts: &'a [i64],
    /// Maps positions of all parts to rows; default: identity.
    pub order: Option<&'a [i32]>,
}

/// Overwrites rows of `to` by `rows`.
pub fn put_rows(cx: &Ctx, rows: Rows, places: Places, to: RowsMut) -> Outcome {
    let op = "put_rows";
    let room = to.as_ref().rows();
    check_table(op, "rows", rows, to.as_ref().cols())?;
    check_len(op, "counts", places.counts.len(), places.parts.len())?;
    let sum: i64 = places.counts.iter().sum();
    let most = places.at.len().min(rows.rows());
    if places.counts.iter().any(|count| *count < 0) || sum > most as i64 {
        let expected = format!("counts of at most {most} rows");
        return Err(fault(FaultKind::Range, op, "counts", expected, format!("{sum}")));
    }
    let mut target = cx.scratch::<i32>(sum as usize);
    let (mut k, mut start) = (0, 0);
    for (count, part) in places.counts.iter().zip(places.parts) {
        for _ in 0..*count {
            let place = (start + i64::from(places.at[k])) as usize;
            let row = places
                .order
                .map_or(place as i32, |order| order.get(place).copied().unwrap_or(-1));
            if row < 0 || row as usize >= room {
                let expected = format!("places of rows below {room}");
                return Err(fault(FaultKind::Range, op, "at", expected, format!("{place}")));
            }
            target[k] = row;
            k += 1;
        }
        start += part;
    }
    let target = &target[..];
    cx.pool.run(target.len().div_ceil(ROW_TILE), |task, _| {
        let from = task * ROW_TILE;
        let target = &target[from..target.len().min(from + ROW_TILE)];
        with_rows!(Rows, rows, rows => with_rows!(RowsMut, to, to => {
            // SAFETY: places are different and were checked, so tasks have different rows.
            unsafe { dispatch(cx.isa, PutRows { rows, from, target, to }) }
        }));
    });
    Ok(())
}

struct PutRows<'a, E, F> {
    rows: crate::Mat<E>,
    from: usize,
    target: &'a [i32],
    to: crate::MatMut<F>,
}

impl<E: crate::rows::Element, F: crate::rows::Element> Kernel for PutRows<'_, E, F> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        let cols = self.rows.cols;
        for (i, &target) in self.target.iter().enumerate() {
            // SAFETY: both rows exist; the target is this task's.
            unsafe {
                let from = self.rows.row(self.from + i).as_ptr();
                let to = self.to.row(target as usize).as_mut_ptr();
                for k in 0..cols.div_ceil(LANES) {
                    store_vector::<V, F>(load_vector::<V, E>(from, k, cols), to, k, cols);
                }
            }
        }
    }
}
