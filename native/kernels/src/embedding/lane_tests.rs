//! Contributions of several lanes in one call: to the bit what lists of the lanes, added in the order of the lane tree, give.

use super::list_tests::{Stored, room};
use super::naive::Summand;
use super::optimizer_tests::hyper;
use super::tests::{Case, Floats, case, table_of};
use super::*;
use crate::Ctx;
use crate::fault::FaultKind;
use crate::rows::{Rows, RowsMut};
use crate::testing::*;

const ROWS: usize = 60;
const WIDTH: usize = 65;
/// Large enough to be summed by sorting for any number of entries.
const ITEMS: usize = 5000;

/// One case per lane: most of their ids are of few rows, so that a row has some of the lanes.
fn lanes(numbers: &[u32]) -> Vec<(u32, Case)> {
    let of = |lane: u32| {
        let mut case = case(ROWS, WIDTH, ITEMS, 40);
        for (s, summand) in case.summands.iter_mut().enumerate() {
            summand.source = numbers_of(lane, s, summand);
            for id in summand.ids.iter_mut().filter(|id| **id % 3 == lane as i32 % 3) {
                *id = -1;
            }
        }
        (lane, case)
    };
    numbers.iter().copied().map(of).collect()
}

fn numbers_of(lane: u32, summand: usize, like: &Summand) -> Vec<f64> {
    numbers(100 * u64::from(lane) + summand as u64, like.source.len())
}

fn contributions(lanes: &[(u32, Case)], floats: &[Floats]) -> Vec<Contribution> {
    let tagged = |((lane, case), floats): (&(u32, Case), &Floats)| {
        let (lane, of) = (*lane, floats.contributions(case));
        of.into_iter().map(move |c| Contribution { lane, ..c })
    };
    lanes.iter().zip(floats).flat_map(tagged).collect()
}

fn read(table: &Padded) -> ReadRows<'static> {
    ReadRows {
        rows: Rows::F32(table.mat()),
        ids: None,
        vocabulary: ITEMS,
    }
}

fn reduce(cx: &Ctx, lanes: &[(u32, Case)]) -> Stored {
    let floats: Vec<Floats> = lanes.iter().map(|(_, case)| Floats::of(case)).collect();
    let table = table_of(&lanes[0].1);
    let mut to = Stored::empty(lanes.iter().map(|(_, case)| room(case)).sum(), WIDTH);
    embedding_reduce(cx, read(&table), &contributions(lanes, &floats), to.write()).expect("a clean run");
    to.cut()
}

/// The plain form: a node of the tree splits at the largest power of two below its size.
fn tree(cx: &Ctx, lanes: &[(u32, Case)], from: u32, to: u32) -> Option<Stored> {
    if to - from == 1 {
        let own = lanes.iter().position(|(lane, _)| *lane == from)?;
        return Some(reduce(cx, &lanes[own..=own]));
    }
    let split = from + (to - from).next_power_of_two() / 2;
    match (tree(cx, lanes, from, split), tree(cx, lanes, split, to)) {
        (Some(left), Some(right)) => {
            let mut sum = Stored::empty(left.ids.len() + right.ids.len(), WIDTH);
            sparse_add(cx, left.read(), right.read(), &[], sum.write()).expect("a clean run");
            Some(sum.cut())
        }
        (left, right) => left.or(right),
    }
}

#[test]
fn lanes_of_one_call_are_added_as_their_lists_are() {
    for (numbers, count) in [
        (&[0, 1][..], 2),
        (&[0, 1, 2], 3),
        (&[0, 1, 2, 3, 4, 5], 6),
        (&[0, 1, 2, 3, 4, 5, 6], 7),
        (&[1, 2, 5, 6], 8),
        (&[0, 7], 8),
        (&[2, 3, 9, 12], 13),
    ] {
        let lanes = lanes(numbers);
        for cx in contexts().iter().flatten() {
            let want = tree(cx, &lanes, 0, count).expect("some lanes");
            assert!(reduce(cx, &lanes) == want, "{numbers:?} of {count} lanes, {:?}", cx.isa);
        }
    }
}

#[test]
fn an_update_by_lanes_is_that_by_their_list() {
    let lanes = lanes(&[0, 1, 2, 4, 5]);
    let floats: Vec<Floats> = lanes.iter().map(|(_, case)| Floats::of(case)).collect();
    for cx in contexts().iter().flatten() {
        let run = |by_list: bool| {
            let mut table = table_of(&lanes[0].1);
            let zeros = Padded::from(&vec![0.0; ITEMS * WIDTH], ITEMS, WIDTH);
            let (mut m, mut v) = (zeros.clone(), zeros);
            let list = reduce(cx, &lanes);
            let rows = RowsMut::F32(table.mat_mut());
            let update = Update::LazyAdam {
                m: m.mat_mut(),
                v: v.mat_mut(),
                hyper: hyper(),
            };
            let done = if by_list {
                let RowList { ids, rows: gradient } = list.read();
                embedding_apply(
                    cx,
                    EmbeddingApply {
                        table: rows,
                        ids: Some(ids),
                        rows: gradient,
                        update,
                        rounding: None,
                        grad_scale: None,
                    },
                )
            } else {
                let contributions = &contributions(&lanes, &floats)[..];
                embedding_update(
                    cx,
                    EmbeddingUpdate {
                        table: rows,
                        staged: None,
                        contributions,
                        update,
                        rounding: None,
                        grad_scale: None,
                    },
                )
            };
            done.expect("a clean run");
            [table.bits(), m.bits(), v.bits()]
        };
        assert!(run(false) == run(true), "{:?}", cx.isa);
    }
}

#[test]
fn lanes_in_disorder_and_lanes_of_a_small_table_are_refused() {
    let cx = Ctx::new(1);
    let refused = |lanes: &[(u32, Case)], vocabulary: usize| {
        let floats: Vec<Floats> = lanes.iter().map(|(_, case)| Floats::of(case)).collect();
        let table = table_of(&lanes[0].1);
        let read = ReadRows {
            vocabulary,
            ..read(&table)
        };
        let mut to = Stored::empty(ITEMS, WIDTH);
        let outcome = embedding_reduce(&cx, read, &contributions(lanes, &floats), to.write());
        outcome.map_err(|fault| (fault.kind, fault.input))
    };
    assert_eq!(refused(&lanes(&[0, 1]), ITEMS), Ok(()));
    assert_eq!(refused(&lanes(&[1, 0]), ITEMS), Err((FaultKind::Argument, "lane")));
    assert_eq!(refused(&lanes(&[0, 1]), 40), Err((FaultKind::Argument, "lane")));
}
