//! Rows that two consecutive steps read. Their gradients are needed before all others.
//!
//! Requests are lists in ascending order, one per requester. Routed ids are lists in ascending order, one per owner.

use super::changed_rows::Requests;
use super::route_ids::{Routed, total};
use crate::ctx::Ctx;
use crate::fault::{FaultKind, Outcome, fault};
use crate::shape::check_len;
use std::ops::Range;

/// The most lists per call. A command has a limited number of operands, and each list is two.
pub const MAX_ASKED: usize = 40;

/// The requests of some of the senders.
#[derive(Clone)]
pub struct Asked<'a> {
    pub requests: Requests<'a>,
    pub senders: Range<usize>,
}

impl<'a> Asked<'a> {
    fn ids(&self, op: &'static str) -> Outcome<&'a [i32]> {
        let Requests { ids, counts } = self.requests;
        total(op, ids, Some(counts))?;
        let Range { start, end } = self.senders;
        if start > end || end > counts.len() {
            let expected = format!("senders below {}", counts.len());
            return Err(fault(
                FaultKind::Argument,
                op,
                "senders",
                expected,
                format!("{start} to {end}"),
            ));
        }
        let place = |sender: usize| counts[..sender].iter().sum::<i64>() as usize;
        Ok(&ids[place(start)..place(end)])
    }
}

/// The ids that at least `least` senders request, ascending, padded with -1. A sender requests an id at most once per list.
pub fn asked_rows(cx: &Ctx, lists: &[Asked], least: usize, to: &mut [i32]) -> Outcome {
    let op = "asked_rows";
    let mut count = 0;
    for list in lists {
        count += list.ids(op)?.len();
    }
    let mut all = cx.scratch::<i32>(count);
    let mut at = 0;
    for list in lists {
        let ids = list.ids(op)?;
        all[at..at + ids.len()].copy_from_slice(ids);
        at += ids.len();
    }
    all.sort_unstable();
    let mut found = 0;
    for same in all.chunk_by(|a, b| a == b).filter(|same| same.len() >= least) {
        let Some(place) = to.get_mut(found) else {
            let (expected, got) = ("room for all of them", format!("for {found}"));
            return Err(fault(FaultKind::Shape, op, "to", expected, got));
        };
        *place = same[0];
        found += 1;
    }
    to[found..].fill(-1);
    Ok(())
}

/// Routed ids to choose from: see [`Routed`]; `order` maps them back to their original places.
#[derive(Clone, Copy)]
pub struct RoutedIds<'a> {
    pub local: &'a [i32],
    pub order: &'a [i32],
    pub counts: &'a [i64],
}

/// The routed ids that are (or are not) in any of the `marked` lists, which are grouped by owner too.
pub fn keep_routed(ids: RoutedIds, marked: &[Requests], inside: bool, to: Routed) -> Outcome {
    let op = "keep_routed";
    let owners = ids.counts.len();
    total(op, ids.local, Some(ids.counts))?;
    check_len(op, "to counts", to.counts.len(), owners)?;
    check_len(op, "order", ids.order.len(), ids.local.len())?;
    check_len(op, "to local", to.local.len(), ids.local.len())?;
    check_len(op, "to order", to.order.len(), ids.local.len())?;
    for list in marked {
        check_len(op, "marked counts", list.counts.len(), owners)?;
        total(op, list.ids, Some(list.counts))?;
    }
    // For each marked list: the current position, and the end of the owner's part.
    let (mut next, mut ends) = ([0; MAX_ASKED], [0; MAX_ASKED]);
    let (mut start, mut kept) = (0, 0);
    for (owner, part) in ids.counts.iter().enumerate() {
        let before = kept;
        for ((list, next), end) in marked.iter().zip(&mut next).zip(&mut ends) {
            *next = *end;
            *end += list.counts[owner] as usize;
        }
        for place in start..start + *part as usize {
            let id = ids.local[place];
            let mut found = false;
            for ((list, next), end) in marked.iter().zip(&mut next).zip(&ends) {
                while *next < *end && list.ids[*next] < id {
                    *next += 1;
                }
                found |= *next < *end && list.ids[*next] == id;
            }
            if found != inside {
                continue;
            }
            to.local[kept] = id;
            to.order[kept] = ids.order[place];
            kept += 1;
        }
        start += *part as usize;
        to.counts[owner] = (kept - before) as i64;
    }
    to.local[kept..].fill(-1);
    to.order[kept..].fill(-1);
    Ok(())
}
