//! Gradient rows that were agreed on before they were computed. Which rows a list has is known only then: an entry whose
//! coefficient is 0 touches nothing. An agreed row that its list lacks is sent as [`ABSENT`], and its receiver leaves it out.

use super::RowList;
use super::contribution::check_ascending;
use super::route_ids::total;
use crate::ctx::Ctx;
use crate::fault::{FaultKind, Outcome, check_ids, fault};
use crate::mat::MatMut;
use crate::rows::Rows;
use crate::shape::check_table;

const ROW_TILE: usize = 256;

/// Bits of the elements of an absent row; the first tells. A NaN with a payload that no arithmetic has: results are the
/// default NaN or, quieted, one of the operands.
const ABSENT: u32 = 0xFFFF_FFFF;

pub(super) fn is_absent(row: &[f32]) -> bool {
    row.first().is_some_and(|x| x.to_bits() == ABSENT)
}

/// Where each id of an ascending list is in another one; -1 if it is not.
fn find_ids(ids: &[i32], list: &[i32], to: &mut [i32]) {
    let mut at = 0;
    for (place, id) in to.iter_mut().zip(ids) {
        while at < list.len() && list[at] < *id {
            at += 1;
        }
        *place = if list.get(at) == Some(id) { at as i32 } else { -1 };
    }
}

/// Rows to send, by receiver.
#[derive(Clone, Copy)]
pub struct Agreed<'a> {
    /// Ascending, padded with -1.
    pub ids: &'a [i32],
    /// Indices of ids.
    pub order: &'a [i32],
    /// Numbers of rows per receiver.
    pub counts: &'a [i64],
}

/// `to[k]` is the list's row of id `agreed.ids[agreed.order[k]]`, or absent.
pub fn pick_agreed(cx: &Ctx, list: RowList, agreed: Agreed, to: MatMut) -> Outcome {
    let op = "pick_agreed";
    let ids = &list.ids[..check_ascending(op, "ids", list.ids, i32::MAX as usize)?];
    let wanted = &agreed.ids[..check_ascending(op, "agreed", agreed.ids, i32::MAX as usize)?];
    let count = total(op, agreed.order, Some(agreed.counts))?;
    let order = &agreed.order[..count];
    check_ids(op, "order", order, wanted.len(), false)?;
    check_table(op, "rows", Rows::F32(list.rows), to.cols)?;
    if list.rows.rows < ids.len() || to.rows < count {
        let expected = format!("{} rows, and room for {count}", ids.len());
        let got = format!("{}, and {}", list.rows.rows, to.rows);
        return Err(fault(FaultKind::Shape, op, "rows", expected, got));
    }
    let mut places = cx.scratch::<i32>(wanted.len());
    find_ids(wanted, ids, &mut places);
    cx.pool.run(count.div_ceil(ROW_TILE), |task, _| {
        for k in task * ROW_TILE..count.min((task + 1) * ROW_TILE) {
            // SAFETY: tasks own disjoint rows of `to`; places are rows of the list.
            unsafe {
                match places[order[k] as usize] {
                    -1 => to.row(k).fill(f32::from_bits(ABSENT)),
                    place => to.row(k).copy_from_slice(list.rows.row(place as usize)),
                }
            }
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{RowListMut, take_list};
    use super::*;
    use crate::mat::Mat;
    use crate::testing::*;

    /// Every `step`-th id from `first`, below `end`, and a tail of -1.
    fn every(first: i32, step: usize, end: i32) -> Vec<i32> {
        (first..end).step_by(step).chain([-1, -1]).collect()
    }

    fn live(ids: &[i32]) -> Vec<i32> {
        ids.iter().copied().filter(|id| *id >= 0).collect()
    }

    /// Two receivers: one gets the first half of what was agreed, the other all of it. Rows that the list has arrive with
    /// their bits, the others leave no trace.
    #[test]
    fn agreed_rows_that_a_list_lacks_are_left_out() {
        let (width, agreed) = (9, every(0, 3, 2000));
        let all = live(&agreed).len();
        let order: Vec<i32> = (0..all as i32 / 2).chain(0..all as i32).collect();
        let counts = [all as i64 / 2, all as i64];
        let received: Vec<i32> = order.iter().map(|place| agreed[*place as usize]).collect();
        let wanted = Agreed {
            ids: &agreed,
            order: &order,
            counts: &counts,
        };
        for own in [
            every(0, 1, 2100),
            every(0, 2, 1900),
            every(600, 6, 601),
            every(1, 3, 1000),
        ] {
            for cx in contexts().iter().flatten() {
                let mut values: Vec<f32> = numbers(1, own.len() * width).iter().map(|x| *x as f32).collect();
                values[0] = f32::NAN; // a gradient that is present all the same
                let list = RowList {
                    ids: &own,
                    rows: Mat::new(&values, own.len(), width),
                };
                let mut sent = vec![7.0; order.len() * width];
                let to = MatMut::new(&mut sent, order.len(), width);
                pick_agreed(cx, list, wanted, to).expect("rows");
                for (index, part) in [&received[..all / 2], &received[all / 2..]].into_iter().enumerate() {
                    let want: Vec<usize> = (0..own.len()).filter(|at| part.contains(&own[*at])).collect();
                    assert_eq!(want.len() < part.len(), own[1] != 1, "absent rows");
                    let (mut ids, mut rows) = (vec![7; want.len() + 1], vec![7.0; want.len() * width]);
                    let to = RowListMut {
                        ids: &mut ids,
                        rows: MatMut::new(&mut rows, want.len(), width),
                    };
                    take_list(cx, (&received, Mat::new(&sent, order.len(), width)), &counts, index, to)
                        .expect("a part");
                    let found: Vec<i32> = want.iter().map(|at| own[*at]).chain([-1]).collect();
                    assert_eq!(ids, found);
                    let bits = |row: &[f32]| row.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                    for (at, row) in want.iter().zip(rows.chunks(width)) {
                        assert_eq!(bits(row), bits(&values[at * width..][..width]));
                    }
                }
                assert!(pick_agreed(cx, list, wanted, MatMut::new(&mut sent, 1, width)).is_err());
                let none = Agreed {
                    ids: &agreed[..1],
                    ..wanted
                };
                assert!(pick_agreed(cx, list, none, MatMut::new(&mut sent, order.len(), width)).is_err());
            }
        }
    }
}
