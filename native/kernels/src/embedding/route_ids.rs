//! Routing of rows between users and owners of a sharded table. Row `id` belongs to owner `id mod n`, as its local row
//! `id div n`.
//!
//! U capacity of a list, n owners, D width. A list received from several senders is a concatenation of parts of
//! `counts[sender]`.

use super::absent_rows::is_absent;
use super::contribution::{check_ascending, live};
use super::{RowListMut, stage_rows::copy_rows_of};
use crate::ctx::Ctx;
use crate::fault::{FaultKind, Outcome, check_ids, fault};
use crate::mat::Mat;
use crate::rows::{Rows, RowsMut};
use crate::shape::{check_len, check_table};

/// Ids grouped by owner.
pub struct Routed<'a> {
    /// Rows at their owners, ascending for each, padded with -1.
    pub local: &'a mut [i32], // [U]
    /// See [`route_ids`], padded with -1.
    pub order: &'a mut [i32], // [U]
    /// Number of ids per owner.
    pub counts: &'a mut [i64], // [n]
}

/// Sorts ascending ids by owner. With `by_place`, `order` maps from the list to the routed one: `local[order[i]]` is `ids[i]`;
/// otherwise back: `local[k]` is `ids[order[k]]`. `places` are indices into the list, or -1, and become those into the routed one.
pub fn route_ids(ids: &[i32], by_place: bool, places: Option<&mut [i32]>, to: Routed) -> Outcome {
    let op = "route_ids";
    let count = check_ascending(op, "ids", ids, i32::MAX as usize)?;
    let owners = to.counts.len();
    if owners == 0 {
        return Err(fault(FaultKind::Shape, op, "counts", "an owner or more", "none"));
    }
    check_len(op, "local", to.local.len(), ids.len())?;
    check_len(op, "order", to.order.len(), ids.len())?;
    to.counts.fill(0);
    for id in &ids[..count] {
        to.counts[*id as usize % owners] += 1;
    }
    // While ids are distributed, an owner's count is the position of its next id.
    let mut start = 0;
    for next in to.counts.iter_mut() {
        start += std::mem::replace(next, start);
    }
    for (place, id) in ids[..count].iter().enumerate() {
        let next = &mut to.counts[*id as usize % owners];
        let routed = *next as usize;
        *next += 1;
        to.local[routed] = id / owners as i32;
        match by_place {
            true => to.order[place] = routed as i32,
            false => to.order[routed] = place as i32,
        }
    }
    for owner in (1..owners).rev() {
        to.counts[owner] -= to.counts[owner - 1];
    }
    to.local[count..].fill(-1);
    to.order[count..].fill(-1);
    let Some(places) = places else { return Ok(()) };
    if !by_place {
        return Err(fault(FaultKind::Argument, op, "places", "an order by place", "another"));
    }
    check_ids(op, "places", places, count, true)?;
    for place in places.iter_mut().filter(|place| **place >= 0) {
        *place = to.order[*place as usize];
    }
    Ok(())
}

/// The rows that `owner` of `owners` has, by local row; -1 for the rows of others.
pub fn local_ids(ids: &[i32], owner: usize, owners: usize, to: &mut [i32]) -> Outcome {
    let (op, owner, owners) = ("local_ids", owner as i32, owners as i32);
    check_len(op, "to", to.len(), ids.len())?;
    if owner >= owners {
        let (expected, got) = (format!("below {owners}"), format!("{owner}"));
        return Err(fault(FaultKind::Argument, op, "owner", expected, got));
    }
    for (to, &id) in to.iter_mut().zip(ids) {
        *to = if id >= 0 && id % owners == owner {
            id / owners
        } else {
            -1
        };
    }
    Ok(())
}

/// Number of ids in a list of parts; without counts, those before the padding of -1.
pub(super) fn total(op: &'static str, ids: &[i32], counts: Option<&[i64]>) -> Outcome<usize> {
    let Some(counts) = counts else {
        return Ok(live(ids));
    };
    let sum: i64 = counts.iter().sum();
    if counts.iter().all(|count| *count >= 0) && sum <= ids.len() as i64 {
        return Ok(sum as usize);
    }
    let expected = format!("counts of at most {} ids", ids.len());
    Err(fault(FaultKind::Range, op, "counts", expected, format!("{sum}")))
}

/// `to[k] = rows[ids[k]]`, ids in any order; rows of `to` beyond the last id are unchanged.
pub fn pick_rows(cx: &Ctx, rows: Rows, ids: &[i32], counts: Option<&[i64]>, to: RowsMut) -> Outcome {
    let op = "pick_rows";
    let count = total(op, ids, counts)?;
    check_table(op, "rows", rows, to.as_ref().cols())?;
    check_ids(op, "ids", &ids[..count], rows.rows(), false)?;
    if to.as_ref().rows() < count {
        let (expected, got) = (format!("room for {count} rows"), format!("for {}", to.as_ref().rows()));
        return Err(fault(FaultKind::Shape, op, "to", expected, got));
    }
    copy_rows_of(cx, rows, &ids[..count], to);
    Ok(())
}

/// Extracts part `index` of a list that was received in parts, without absent rows.
pub fn take_list(cx: &Ctx, list: (&[i32], Mat), counts: &[i64], index: usize, to: RowListMut) -> Outcome {
    let op = "take_list";
    let (ids, rows) = list;
    let whole = total(op, ids, Some(counts))?;
    check_table(op, "rows", Rows::F32(rows), to.rows.cols)?;
    let (Some(&count), true) = (counts.get(index), whole <= rows.rows) else {
        let expected = format!("an index below {}, and rows for all ids", counts.len());
        return Err(fault(FaultKind::Argument, op, "index", expected, format!("{index}")));
    };
    let from = counts[..index].iter().sum::<i64>() as usize;
    let mut present = cx.scratch::<i32>(count as usize);
    let mut found = 0;
    for place in from..from + count as usize {
        // SAFETY: there are rows for all ids.
        if !is_absent(unsafe { rows.row(place) }) {
            present[found] = place as i32;
            found += 1;
        }
    }
    if to.ids.len() < found || to.rows.rows < found {
        let (expected, got) = (format!("room for {found} rows"), format!("for {}", to.ids.len()));
        return Err(fault(FaultKind::Shape, op, "to", expected, got));
    }
    for (to, place) in to.ids.iter_mut().zip(&present[..found]) {
        *to = ids[*place as usize];
    }
    to.ids[found..].fill(-1);
    copy_rows_of(cx, Rows::F32(rows), &present[..found], RowsMut::F32(to.rows));
    Ok(())
}
