//! Gradient lists, their sums and their application, and staged rows: compared with oracles, and to the bit
//! against the ops that do without them.

use super::naive::{self, List};
use super::optimizer_tests::hyper;
use super::tests::{CASES, Case, Floats, TOLERANCE, case, table_of};
use super::*;
use crate::Ctx;
use crate::half::float_to_half;
use crate::mat::{Mat, MatMut};
use crate::rows::{Rows, RowsMut};
use crate::testing::*;

/// Ids and rows of a list on its own.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Stored {
    pub ids: Vec<i32>,
    rows: Vec<f32>,
    width: usize,
}

impl Stored {
    pub fn empty(room: usize, width: usize) -> Stored {
        Stored {
            ids: vec![7; room],
            rows: vec![f32::NAN; room * width],
            width,
        }
    }
    pub fn read(&self) -> RowList<'_> {
        RowList {
            ids: &self.ids,
            rows: Mat::new(&self.rows, self.ids.len(), self.width),
        }
    }
    pub fn write(&mut self) -> RowListMut<'_> {
        let rows = MatMut::new(&mut self.rows, self.ids.len(), self.width);
        RowListMut {
            ids: &mut self.ids,
            rows,
        }
    }
    /// Without the room that is left.
    pub fn cut(mut self) -> Stored {
        let count = self.ids.iter().filter(|id| **id >= 0).count();
        assert!(self.ids[count..].iter().all(|id| *id == -1), "a tail of -1");
        self.ids.truncate(count);
        self.rows.truncate(count * self.width);
        self
    }
    fn assert_close(&self, want: &List, tolerance: f64) {
        assert_eq!(self.ids, want.keys().copied().collect::<Vec<_>>());
        let rows: Vec<f64> = want.values().flatten().copied().collect();
        for (i, (got, want)) in self.rows.iter().zip(&rows).enumerate() {
            let error = (f64::from(*got) - want).abs();
            assert!(
                error <= tolerance * (1.0 + want.abs()),
                "element {i}: {got}, not {want}"
            );
        }
    }
}

pub(super) fn room(case: &Case) -> usize {
    case.items.min(case.summands.iter().map(|s| s.ids.len()).sum())
}

fn tolerance(rows: usize) -> f64 {
    TOLERANCE * (rows as f64 / 50.0).max(1.0)
}

fn reduce_from(cx: &Ctx, case: &Case, read: ReadRows) -> Stored {
    let floats = Floats::of(case);
    let mut to = Stored::empty(room(case) + 3, case.width);
    embedding_reduce(cx, read, &floats.contributions(case), to.write()).expect("a clean run");
    to.cut()
}

fn reduce(cx: &Ctx, case: &Case) -> Stored {
    let table = table_of(case);
    let read = ReadRows {
        rows: Rows::F32(table.mat()),
        ids: None,
        vocabulary: case.items,
    };
    reduce_from(cx, case, read)
}

#[test]
fn a_reduced_gradient_is_the_touched_rows_of_the_dense_one() {
    for [rows, width, items, spread] in CASES {
        let case = case(rows, width, items, spread);
        let want = naive::reduce(&case.table, width, &case.summands);
        let lists: Vec<Stored> = contexts().iter().flatten().map(|cx| reduce(cx, &case)).collect();
        for list in &lists {
            list.assert_close(&want, tolerance(rows));
        }
        // Threads change nothing: contexts of one instruction set agree to the bit.
        assert!(reduce(&Ctx::new(1), &case) == reduce(&Ctx::new(3), &case));
    }
}

/// The case with its ids replaced by places among the rows that it touches, those rows, and the places' ids.
fn staged(cx: &Ctx, case: &mut Case, half: bool) -> (Vec<i32>, Vec<f32>, Vec<u16>) {
    let mut ids = vec![9; room(case) + 5];
    let lists: Vec<Vec<i32>> = case.summands.iter().map(|s| s.ids.clone()).collect();
    let named: Vec<IdList> = (case.summands.iter_mut().zip(&lists))
        .map(|(s, ids)| IdList {
            ids: Mat::new(ids, ids.len() / s.per, s.per),
            places: MatMut::new(&mut s.ids, ids.len() / s.per, s.per),
        })
        .collect();
    unique_ids(cx, &named, case.items, &mut ids).expect("a clean run");
    let (mut floats, mut halves) = (vec![f32::NAN; ids.len() * case.width], vec![0; ids.len() * case.width]);
    let to = match half {
        true => RowsMut::F16(MatMut::new(&mut halves, ids.len(), case.width)),
        false => RowsMut::F32(MatMut::new(&mut floats, ids.len(), case.width)),
    };
    stage_rows(cx, Rows::F32(table_of(case).mat()), &ids, to).expect("a clean run");
    (ids, floats, halves)
}

#[test]
fn staged_rows_give_the_bits_of_the_whole_table() {
    for [rows, width, items, spread] in CASES {
        for half in [false, true] {
            let cx = Ctx::new(2);
            let mut case = case(rows, width, items, spread); // numbers that FP16 holds
            let want = reduce(&cx, &case);
            let (ids, floats, halves) = staged(&cx, &mut case, half);
            let read = ReadRows {
                rows: match half {
                    true => Rows::F16(Mat::new(&halves, ids.len(), width)),
                    false => Rows::F32(Mat::new(&floats, ids.len(), width)),
                },
                ids: Some(&ids),
                vocabulary: items,
            };
            assert!(reduce_from(&cx, &case, read) == want);
        }
    }
}

#[test]
fn unique_ids_are_the_set_and_its_places() {
    for [rows, width, items, spread] in CASES {
        let mut case = case(rows, width, items, spread);
        let lists: Vec<Vec<i32>> = case.summands.iter().map(|s| s.ids.clone()).collect();
        let (ids, floats, halves) = staged(&Ctx::new(3), &mut case, false);
        let set: std::collections::BTreeSet<i32> = lists.iter().flatten().copied().filter(|id| *id >= 0).collect();
        let mut want: Vec<i32> = set.into_iter().collect();
        want.resize(ids.len(), -1);
        assert_eq!(ids, want);
        for (summand, list) in case.summands.iter().zip(&lists) {
            let named = summand
                .ids
                .iter()
                .map(|place| usize::try_from(*place).map_or(-1, |place| ids[place]));
            assert!(named.eq(list.iter().copied()));
        }
        for (place, id) in ids.iter().enumerate().filter(|(_, id)| **id >= 0) {
            for k in 0..width {
                let value = case.table[*id as usize * width + k] as f32;
                assert_eq!(floats[place * width + k], value);
            }
        }
        assert!(halves.iter().all(|x| *x == float_to_half(0.0)));
    }
}

#[test]
fn lists_add_up_row_by_row() {
    for (left, right) in [
        ([900, 50, 100, 90], [300, 50, 100, 2]),
        ([130, 65, 4097, 4097], [0, 65, 4097, 1]),
    ] {
        let [left, right] = [left, right].map(|[rows, width, items, spread]| case(rows, width, items, spread));
        let (width, items) = (left.width, left.items);
        let oracle = |case: &Case| naive::reduce(&case.table, width, &case.summands);
        let whole = naive::sparse_add(&oracle(&left), &oracle(&right));
        for without in [vec![], (0..items as i32).step_by(3).chain([-1, -1]).collect()] {
            let want = whole
                .clone()
                .into_iter()
                .filter(|(id, _)| !without.contains(id))
                .collect();
            let sums: Vec<Stored> = [1, 3]
                .into_iter()
                .map(|threads| {
                    let cx = Ctx::new(threads);
                    let (left, right) = (reduce(&cx, &left), reduce(&cx, &right));
                    let mut to = Stored::empty(items, width);
                    sparse_add(&cx, left.read(), right.read(), &without, to.write()).expect("a clean run");
                    to.cut()
                })
                .collect();
            sums[0].assert_close(&want, tolerance(900));
            assert!(sums[0] == sums[1]);
        }
    }
}

#[test]
fn a_list_without_room_or_order_is_refused() {
    let case = case(40, 50, 30, 30);
    let cx = Ctx::new(1);
    let list = reduce(&cx, &case);
    let mut small = Stored::empty(list.ids.len() - 1, 50);
    let fault = sparse_add(&cx, list.read(), list.read(), &[], small.write()).expect_err("a fault");
    assert_eq!(fault.input, "to");
    let mut shuffled = list.clone();
    shuffled.ids.swap(0, 1);
    let mut to = Stored::empty(60, 50);
    let fault = sparse_add(&cx, shuffled.read(), list.read(), &[], to.write()).expect_err("a fault");
    assert_eq!(fault.input, "left");
}

/// Table and moments after lazy Adam, by `run`.
fn lazy(case: &Case, run: impl FnOnce(RowsMut, Update)) -> [Padded; 3] {
    let zero = Padded::from(&vec![0.0; case.items * case.width], case.items, case.width);
    let [mut table, mut m, mut v] = [table_of(case), zero.clone(), zero];
    let update = Update::LazyAdam {
        m: m.mat_mut(),
        v: v.mat_mut(),
        hyper: hyper(),
    };
    run(RowsMut::F32(table.mat_mut()), update);
    [table, m, v]
}

#[test]
fn applying_a_list_is_updating_by_its_contributions_to_the_bit() {
    for [rows, width, items, spread] in CASES {
        let case = case(rows, width, items, spread);
        let cx = Ctx::new(2);
        let (floats, list) = (Floats::of(&case), reduce(&cx, &case));
        let at_once = lazy(&case, |table, update| {
            let args = EmbeddingUpdate {
                table,
                staged: None,
                contributions: &floats.contributions(&case),
                update,
                rounding: None,
                grad_scale: Some(&0.5),
            };
            embedding_update(&cx, args).expect("a clean run");
        });
        let in_two = lazy(&case, |table, update| {
            let args = EmbeddingApply {
                table,
                ids: Some(&list.ids),
                rows: list.read().rows,
                update,
                rounding: None,
                grad_scale: Some(&0.5),
            };
            embedding_apply(&cx, args).expect("a clean run");
        });
        for (one, two) in at_once.iter().zip(&in_two) {
            for i in 0..items {
                // SAFETY: rows of the test's own matrices.
                assert!(unsafe { one.mat().row(i) == two.mat().row(i) });
            }
        }
    }
}

#[test]
fn a_gradient_of_all_rows_needs_no_ids() {
    let (items, width) = (60, 24);
    let case = case(600, width, items, items);
    let cx = Ctx::new(2);
    let gradient: Vec<f32> = numbers(40, items * width).iter().map(|x| *x as f32).collect();
    let all: Vec<i32> = (0..items as i32).collect();
    let apply = |ids| {
        lazy(&case, |table, update| {
            let rows = Mat::new(&gradient, items, width);
            let args = EmbeddingApply {
                table,
                ids,
                rows,
                update,
                rounding: None,
                grad_scale: None,
            };
            embedding_apply(&cx, args).expect("a clean run");
        })
    };
    for (one, two) in apply(None).iter().zip(&apply(Some(&all))) {
        for i in 0..items {
            // SAFETY: rows of the test's own matrices.
            assert!(unsafe { one.mat().row(i) == two.mat().row(i) });
        }
    }
}
