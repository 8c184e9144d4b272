//! Routing of rows between users and owners of a sharded table. Row `id` belongs to owner `id mod n`, as its local row
//! `id div n`.
//!
//! U capacity of a list, n owners, D width. A list received from several senders is a concatenation of parts of
//! `counts[sender]`.

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
/// otherwise back: `local[k]` is `ids[order[k]]`.
pub fn route_ids(ids: &[i32], by_place: bool, to: Routed) -> Outcome {
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

/// Extracts part `index` of a list that was received in parts.
pub fn take_list(cx: &Ctx, list: (&[i32], Mat), counts: &[i64], index: usize, to: RowListMut) -> Outcome {
    let op = "take_list";
    let (ids, rows) = list;
    let whole = total(op, ids, Some(counts))?;
    check_table(op, "rows", Rows::F32(rows), to.rows.cols)?;
    let (Some(&count), true) = (counts.get(index), whole <= rows.rows) else {
        let expected = format!("an index below {}, and rows for all ids", counts.len());
        return Err(fault(FaultKind::Argument, op, "index", expected, format!("{index}")));
    };
    let (from, count) = (counts[..index].iter().sum::<i64>() as usize, count as usize);
    if to.ids.len() < count || to.rows.rows < count {
        let (expected, got) = (format!("room for {count} rows"), format!("for {}", to.ids.len()));
        return Err(fault(FaultKind::Shape, op, "to", expected, got));
    }
    to.ids[..count].copy_from_slice(&ids[from..from + count]);
    to.ids[count..].fill(-1);
    let part = rows.row_range(from, count);
    cx.pool.run(count.div_ceil(ROW_TILE), |task, _| {
        for row in task * ROW_TILE..count.min((task + 1) * ROW_TILE) {
            // SAFETY: tasks own disjoint rows of `to`; both have the row.
            unsafe { to.rows.row(row).copy_from_slice(part.row(row)) };
        }
    });
    Ok(())
}

const ROW_TILE: usize = 256;
