//! Rows on their way between owners and users, against plain loops.

use super::*;
use crate::exact_sum::ExactSum;
use crate::fault::FaultKind;
use crate::mat::{Mat, MatMut};
use crate::rng::{Key, word};
use crate::rows::{Rows, RowsMut};
use crate::testing::*;

/// Ascending ids below `most`, about one in `share`, with a tail of -1.
pub(super) fn ids(seed: u64, most: usize, share: u32, tail: usize) -> Vec<i32> {
    let key = Key::new(seed, 1, 1);
    let mut ids: Vec<i32> = (0..most as i32)
        .filter(|id| word(key, *id as u64).is_multiple_of(share))
        .collect();
    ids.extend(std::iter::repeat_n(-1, tail));
    ids
}

pub(super) fn live(ids: &[i32]) -> Vec<i32> {
    ids.iter().copied().filter(|id| *id >= 0).collect()
}

fn matrix(seed: u64, rows: usize, width: usize) -> Vec<f32> {
    numbers(seed, rows * width).iter().map(|x| *x as f32).collect()
}

pub(super) struct Route {
    pub local: Vec<i32>,
    pub order: Vec<i32>,
    pub counts: Vec<i64>,
}

pub(super) fn route(ids: &[i32], owners: usize, by_place: bool) -> Route {
    let mut to = Route {
        local: vec![7; ids.len()],
        order: vec![7; ids.len()],
        counts: vec![7; owners],
    };
    let routed = Routed {
        local: &mut to.local,
        order: &mut to.order,
        counts: &mut to.counts,
    };
    // Where ids go by place, their own indices become the order.
    let mut places: Vec<i32> = (0..live(ids).len() as i32).chain([-1]).collect();
    route_ids(ids, by_place, by_place.then_some(&mut places), routed).expect("a route");
    if by_place {
        assert_eq!(places[..places.len() - 1], to.order[..places.len() - 1]);
        assert_eq!(places.last(), Some(&-1));
    }
    to
}

#[test]
fn ids_go_to_their_owners_in_order() {
    for owners in 1..6 {
        for ids in [ids(1, 1000, 3, 5), ids(2, 40, 1, 0), ids(3, 9, 100, 4), vec![]] {
            let back = route(&ids, owners, false);
            let want: Vec<i32> = (0..owners as i32)
                .flat_map(|owner| live(&ids).into_iter().filter(move |id| id % owners as i32 == owner))
                .collect();
            let count = want.len();
            let found: Vec<i32> = back.order[..count].iter().map(|place| ids[*place as usize]).collect();
            assert_eq!(found, want);
            let local: Vec<i32> = want.iter().map(|id| id / owners as i32).collect();
            assert_eq!(back.local[..count], local);
            assert!(back.local[count..].iter().chain(&back.order[count..]).all(|x| *x == -1));
            for owner in 0..owners {
                let wanted = want.iter().filter(|id| **id as usize % owners == owner).count();
                assert_eq!(back.counts[owner], wanted as i64);
            }
            let there = route(&ids, owners, true);
            for (place, id) in live(&ids).iter().enumerate() {
                assert_eq!(there.local[there.order[place] as usize], id / owners as i32);
            }
        }
    }
    assert!(
        route_ids(
            &[3, 2],
            true,
            None,
            Routed {
                local: &mut [0; 2],
                order: &mut [0; 2],
                counts: &mut [0]
            }
        )
        .is_err()
    );
}

#[test]
fn every_id_is_local_to_one_owner() {
    for owners in 1..5 {
        for owner in 0..owners {
            let ids: Vec<i32> = (-1..40).collect();
            let mut to = vec![7; ids.len()];
            local_ids(&ids, owner, owners, &mut to).expect("an owner");
            for (id, local) in ids.into_iter().zip(to) {
                let own = id >= 0 && id as usize % owners == owner;
                assert_eq!(local, if own { id / owners as i32 } else { -1 });
            }
        }
        assert!(local_ids(&[], owners, owners, &mut []).is_err());
    }
}

/// Reading through owners gives what the table holds; lists that come back in parts are the ones that were sent.
#[test]
fn rows_come_from_shards_as_from_the_table() {
    let width = 9;
    for cx in contexts().iter().flatten() {
        for owners in 1..5 {
            let table = matrix(4, 500, width);
            let ids = ids(5, 500, 4, 11);
            let Route { local, order, counts } = route(&ids, owners, true);
            let mut routed = vec![f32::NAN; ids.len() * width];
            let mut at = 0;
            for owner in 0..owners {
                let shard: Vec<f32> = table
                    .chunks(width)
                    .skip(owner)
                    .step_by(owners)
                    .flatten()
                    .copied()
                    .collect();
                let part = &local[at..at + counts[owner] as usize];
                let to = RowsMut::F32(MatMut::new(&mut routed[at * width..], part.len(), width));
                let rows = Rows::F32(Mat::new(&shard, shard.len() / width, width));
                pick_rows(cx, rows, part, Some(&[part.len() as i64]), to).expect("a copy");
                at += part.len();
            }
            let mut staged = vec![f32::NAN; ids.len() * width];
            let rows = Rows::F32(Mat::new(&routed, ids.len(), width));
            pick_rows(
                cx,
                rows,
                &order,
                None,
                RowsMut::F32(MatMut::new(&mut staged, ids.len(), width)),
            )
            .expect("a copy");
            for (place, id) in live(&ids).iter().enumerate() {
                let want = &table[*id as usize * width..][..width];
                assert_eq!(&staged[place * width..][..width], want, "place {place}");
            }
            let mut at = 0;
            for (owner, count) in counts.iter().enumerate() {
                let (mut part, mut rows) = (vec![7; ids.len()], vec![f32::NAN; ids.len() * width]);
                let to = RowListMut {
                    ids: &mut part,
                    rows: MatMut::new(&mut rows, ids.len(), width),
                };
                let list = (&local[..], Mat::new(&routed, ids.len(), width));
                take_list(cx, list, &counts, owner, to).expect("a part");
                let count = *count as usize;
                assert_eq!(part[..count], local[at..at + count]);
                assert!(part[count..].iter().all(|id| *id == -1));
                assert_eq!(rows[..count * width], routed[at * width..(at + count) * width]);
                at += count;
            }
        }
    }
}

#[test]
fn changed_rows_are_found_counted_and_put_in_place() {
    let width = 5;
    let cx = crate::Ctx::new(2);
    let parts = [ids(6, 300, 3, 0), vec![], ids(7, 300, 5, 0)];
    let requests: Vec<i32> = parts.concat();
    let counts: Vec<i64> = parts.iter().map(|part| part.len() as i64).collect();
    let (list, other) = (ids(8, 300, 2, 6), ids(9, 300, 7, 1));
    let asked = Requests {
        ids: &requests,
        counts: &counts,
    };
    let mut seen = [10, 20];
    count_changed(asked, &[&list, &other], &mut seen).expect("a count");
    let hit = requests
        .iter()
        .filter(|id| list.contains(id) || other.contains(id))
        .count();
    assert_eq!(seen, [10 + requests.len() as i64, 20 + hit as i64]);
    for by_list in [false, true] {
        let (mut at, mut from, mut found) = (vec![7; requests.len()], vec![7; requests.len()], vec![7; 3]);
        let to = Changed {
            at: &mut at,
            from: &mut from,
            counts: &mut found,
        };
        changed_rows(asked, &list, by_list, to).expect("changed rows");
        let want: Vec<(i32, i32)> = parts
            .iter()
            .flat_map(|part| part.iter().enumerate())
            .filter(|(_, id)| list.contains(id))
            .map(|(at, id)| (at as i32, *id))
            .collect();
        assert_eq!(found.iter().sum::<i64>(), want.len() as i64);
        let got: Vec<(i32, i32)> = at.iter().copied().zip(from.iter().copied()).take(want.len()).collect();
        let id_of = |from: i32| if by_list { list[from as usize] } else { from };
        assert_eq!(
            got.iter().map(|(at, from)| (*at, id_of(*from))).collect::<Vec<_>>(),
            want
        );
        // Rows by id, put over the requests': those in the list have the new value, the others keep theirs.
        let values: Vec<f32> = want.iter().flat_map(|(_, id)| vec![*id as f32; width]).collect();
        let mut to = vec![-1.0; requests.len() * width];
        let rows = Rows::F32(Mat::new(&values, want.len(), width));
        let reversed: Vec<i32> = (0..requests.len() as i32).rev().collect();
        for order in [None, Some(&reversed[..])] {
            let places = Places {
                at: &at,
                counts: &found,
                parts: &counts,
                order,
            };
            to.fill(-1.0);
            put_rows(
                &cx,
                rows,
                places,
                RowsMut::F32(MatMut::new(&mut to, requests.len(), width)),
            )
            .expect("rows");
            for (k, id) in requests.iter().enumerate() {
                let row = order.map_or(k, |order| order[k] as usize);
                let want = if list.contains(id) { *id as f32 } else { -1.0 };
                assert!(to[row * width..][..width].iter().all(|x| *x == want), "request {k}");
            }
        }
    }
}

#[test]
fn counts_beyond_the_room_are_refused() {
    let cx = crate::Ctx::new(1);
    let (ids, mut rows) = ([0, 1], [0.0; 4]);
    let mut to = [0.0; 4];
    let mat = Rows::F32(Mat::new(&rows, 2, 2));
    let refused = pick_rows(&cx, mat, &ids, Some(&[3]), RowsMut::F32(MatMut::new(&mut to, 2, 2)));
    assert_eq!(refused.map_err(|f| f.kind), Err(FaultKind::Range));
    let asked = Requests {
        ids: &ids,
        counts: &[-1],
    };
    assert!(count_changed(asked, &[], &mut [0, 0]).is_err());
    let places = Places {
        at: &[5],
        counts: &[1],
        parts: &[1],
        order: None,
    };
    let refused = put_rows(&cx, mat, places, RowsMut::F32(MatMut::new(&mut to, 2, 2)));
    assert_eq!(refused.map_err(|f| f.kind), Err(FaultKind::Range));
    let list = RowListMut {
        ids: &mut [0],
        rows: MatMut::new(&mut rows[..2], 1, 2),
    };
    assert!(take_list(&cx, (&ids, Mat::new(&to, 2, 2)), &[2], 0, list).is_err());
}

/// The norm of a gradient list is the sum of its shards' norms, to the bit.
#[test]
fn the_square_sum_of_shards_is_that_of_the_list() {
    let width = 19;
    for cx in contexts().iter().flatten() {
        let mut table = matrix(1, 4000, width);
        let ids = ids(11, 4000, 2, 0);
        let rows = matrix(12, ids.len(), width);
        let mut square = |ids: &[i32], rows: &[f32], to: &mut ExactSum| {
            let args = EmbeddingApply {
                table: RowsMut::F32(MatMut::new(&mut table, 4000, width)),
                ids: Some(ids),
                rows: Mat::new(rows, ids.len(), width),
                update: Update::SquareSum { to },
                rounding: None,
                grad_scale: None,
            };
            embedding_apply(cx, args).expect("a sum");
        };
        let mut whole = ExactSum::ZERO;
        square(&ids, &rows, &mut whole);
        for owners in 2..4 {
            let Route { local, order, counts } = route(&ids, owners, false);
            let mut sum = ExactSum::ZERO;
            let mut at = 0;
            for count in counts {
                let range = at..at + count as usize;
                let shard: Vec<f32> = order[range.clone()]
                    .iter()
                    .flat_map(|place| rows[*place as usize * width..][..width].to_vec())
                    .collect();
                square(&local[range.clone()], &shard, &mut sum);
                at = range.end;
            }
            assert_eq!(sum, whole);
        }
    }
}
