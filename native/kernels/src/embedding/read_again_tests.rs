//! Which rows are read again, against plain loops.

use super::shard_tests::{Route, ids, live, route};
use super::*;
use crate::testing::*;

/// The ids of several requests, by how many have them; and the routed ids that are in any of the marked lists, or in none.
#[test]
fn routed_ids_are_parted_by_what_is_read_again() {
    for (owners, lists) in [(1, 1), (2, 3), (3, 0), (4, 2)] {
        let own = ids(31, 900, 2, 3);
        let Route { local, order, counts } = route(&own, owners, false);
        let marked: Vec<Vec<i32>> = (0..lists).map(|k| ids(40 + k, 1000, 5, 0)).collect();
        let routes: Vec<Route> = marked.iter().map(|list| route(list, owners, false)).collect();
        let marks: Vec<Requests> = routes
            .iter()
            .map(|Route { local, counts, .. }| Requests { ids: local, counts })
            .collect();
        for inside in [true, false] {
            let mut to = Route {
                local: vec![7; own.len()],
                order: vec![7; own.len()],
                counts: vec![7; owners],
            };
            let routed = Routed {
                local: &mut to.local,
                order: &mut to.order,
                counts: &mut to.counts,
            };
            let from = RoutedIds {
                local: &local,
                order: &order,
                counts: &counts,
            };
            keep_routed(from, &marks, inside, routed).expect("a part");
            let want: Vec<i32> = (0..owners as i32)
                .flat_map(|owner| live(&own).into_iter().filter(move |id| id % owners as i32 == owner))
                .filter(|id| marked.iter().any(|list| list.contains(id)) == inside)
                .collect();
            let kept = to.counts.iter().sum::<i64>() as usize;
            let found: Vec<i32> = to.order[..kept].iter().map(|place| own[*place as usize]).collect();
            assert_eq!(found, want);
            let there: Vec<i32> = want.iter().map(|id| id / owners as i32).collect();
            assert_eq!(to.local[..kept], there);
            assert!(to.local[kept..].iter().chain(&to.order[kept..]).all(|x| *x == -1));
        }
        for cx in contexts().iter().flatten() {
            for (senders, least) in [(0..owners, 1), (0..owners, 2), (owners / 2..owners, 1)] {
                let parts: Vec<Asked> = marks
                    .iter()
                    .map(|requests| Asked {
                        requests: *requests,
                        senders: senders.clone(),
                    })
                    .collect();
                let of_senders = |list: &Vec<i32>| {
                    let ids = live(list).into_iter();
                    let (owners, senders) = (owners as i32, senders.clone());
                    ids.filter(move |id| senders.contains(&((id % owners) as usize)))
                        .map(move |id| id / owners)
                };
                let all: Vec<i32> = marked.iter().flat_map(of_senders).collect();
                let times = |id: i32| all.iter().filter(|other| **other == id).count();
                let want: Vec<i32> = (0..1000).filter(|id| times(*id) >= least).collect();
                let mut asked = vec![7; 1000];
                asked_rows(cx, &parts, least, &mut asked).expect("a list");
                assert_eq!(live(&asked), want);
                assert!(asked[want.len()..].iter().all(|id| *id == -1));
                if !want.is_empty() {
                    assert!(asked_rows(cx, &parts, least, &mut asked[..want.len() - 1]).is_err());
                }
            }
            for requests in marks.iter().copied() {
                let senders = 0..owners + 1;
                assert!(asked_rows(cx, &[Asked { requests, senders }], 1, &mut [0; 1000]).is_err());
            }
        }
    }
}
