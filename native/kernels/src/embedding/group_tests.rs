//! Source rows that share their ids, against the same summands written out one by one.

use super::naive::{Summand, gradient};
use super::tests::TOLERANCE;
use super::*;
use crate::Ctx;
use crate::fault::FaultKind;
use crate::mat::{Mat, MatMut};
use crate::rng::{Key, below, word};
use crate::rows::RowsMut;
use crate::testing::*;

/// `k` source rows to each of `rows` lists of `per` ids.
struct Case {
    rows: usize,
    per: usize,
    k: usize,
    items: usize,
    width: usize,
    ids: Vec<i32>,
    source: Vec<f64>,
    coef: Vec<f64>,
}

/// Ids are below `spread`.
fn case([rows, per, k, items, spread, width]: [usize; 6]) -> Case {
    let id = |i: usize| match word(Key::new(1, 2, 3), i as u64) {
        w if w % 16 == 3 => -1,
        w => below(w, spread as u32) as i32,
    };
    let zeros = |(i, x): (usize, f64)| {
        if (i / k).is_multiple_of(5) || i.is_multiple_of(7) {
            0.0
        } else {
            x
        }
    };
    Case {
        rows,
        per,
        k,
        items,
        width,
        ids: (0..rows * per).map(id).collect(),
        source: numbers(4, rows * k * width),
        coef: numbers(5, rows * per * k).into_iter().enumerate().map(zeros).collect(),
    }
}

/// Ids, source rows and coefficients: one id a source row, or all ids of a list a source row.
type Written = (Vec<i32>, Vec<f64>, Vec<f64>);

impl Case {
    /// In the order of (list, id, source row).
    fn by_id(&self) -> Written {
        let Case { k, per, width, .. } = *self;
        let all = 0..self.rows * per * k;
        let source = |at: usize| &self.source[(at / k / per * k + at % k) * width..][..width];
        let ids = all.clone().map(|at| self.ids[at / k]).collect();
        (ids, all.flat_map(source).copied().collect(), self.coef.clone())
    }

    /// In the order of (list, source row, id).
    fn by_source(&self) -> Written {
        let Case { k, per, .. } = *self;
        let places = || (0..self.rows * k).flat_map(|row| (0..per).map(move |j| (row / k * per + j, row % k)));
        let ids = places().map(|(at, _)| self.ids[at]).collect();
        let coef = places().map(|(at, member)| self.coef[at * k + member]).collect();
        (ids, self.source.clone(), coef)
    }

    /// The dense gradient; `per` ids to each of `lists`.
    fn gradient(&self, cx: &Ctx, (ids, source, coef): &Written, [lists, per]: [usize; 2]) -> Padded {
        let (items, width) = (self.items, self.width);
        let mut table = Padded::from(&numbers(6, items * width), items, width);
        let mut grad = Padded::unset(items, width);
        let source = Padded::from(source, source.len() / width, width);
        let coef = Padded::from(coef, lists, coef.len() / lists.max(1));
        let contribution = Contribution {
            lane: 0,
            ids: Mat::new(ids, lists, per),
            source: source.mat(),
            coef: Some(coef.mat()),
            scale: 0.5,
            normalized: Some(1e-6),
            rounded: false,
        };
        let args = EmbeddingUpdate {
            table: RowsMut::F32(table.mat_mut()),
            staged: None,
            contributions: &[contribution],
            update: Update::Dense { grad: grad.overwrite() },
            rounding: None,
            grad_scale: None,
        };
        embedding_update(cx, args).expect("a clean run");
        grad
    }

    fn shared(&self, cx: &Ctx) -> Padded {
        let written = (self.ids.clone(), self.source.clone(), self.coef.clone());
        self.gradient(cx, &written, [self.rows, self.per])
    }
}

#[test]
fn shared_ids_give_the_bits_of_the_summands_written_out() {
    // Sorted: few and many to a row. In parts: a small table that is drawn from often.
    for (sizes, sorted) in [
        ([1, 1, 2, 5, 5, 3], true),
        ([40, 7, 2, 90, 90, 17], true),
        ([33, 16, 4, 9000, 9000, 65], true),
        ([50, 30, 3, 5000, 3, 130], true),
        ([20, 9, MAX_MEMBERS, 5000, 2, 90], true),
        ([700, 64, 2, 37, 37, 50], false),
        ([300, 32, 5, 12, 12, 7], false),
    ] {
        let case = case(sizes);
        let summands = case.rows * case.k * case.per;
        assert_eq!(parts::parts(case.items, summands).is_none(), sorted, "{sizes:?}");
        for contexts in contexts() {
            let (written, shape) = match sorted {
                true => (case.by_id(), [summands, 1]),
                false => (case.by_source(), [case.rows * case.k, case.per]),
            };
            let want = case.gradient(&contexts[0], &written, shape);
            for cx in &contexts {
                assert_eq!(case.shared(cx).bits(), want.bits(), "{sizes:?}");
            }
        }
    }
}

#[test]
fn both_ways_to_sum_match_the_oracle() {
    for sizes in [[40, 7, 2, 90, 90, 17], [700, 64, 2, 37, 37, 50]] {
        let case = case(sizes);
        let (ids, source, coef) = case.by_id();
        let summand = Summand {
            per: 1,
            ids,
            source,
            coef: Some(coef),
            scale: 0.5,
            normalized: Some(1e-6),
        };
        let (want, _) = gradient(&numbers(6, case.items * case.width), case.width, &[summand]);
        case.shared(&Ctx::new(2))
            .assert_close(&want, 50.0 * TOLERANCE, "gradient");
    }
}

#[test]
fn too_many_source_rows_to_an_id_are_refused() {
    let (mut table, ids) = ([1.0; 6], [1]);
    let source = [1.0; 2 * (MAX_MEMBERS + 1)];
    let contribution = Contribution {
        lane: 0,
        ids: Mat::new(&ids, 1, 1),
        source: Mat::new(&source, MAX_MEMBERS + 1, 2),
        coef: None,
        scale: 1.0,
        normalized: None,
        rounded: false,
    };
    let mut grad = [0.0; 6];
    let args = EmbeddingUpdate {
        table: RowsMut::F32(MatMut::new(&mut table, 3, 2)),
        staged: None,
        contributions: &[contribution],
        update: Update::Dense {
            grad: crate::mat::Grad::overwrite(MatMut::new(&mut grad, 3, 2)),
        },
        rounding: None,
        grad_scale: None,
    };
    let fault = embedding_update(&Ctx::new(1), args).expect_err("a fault");
    assert_eq!((fault.kind, fault.input), (FaultKind::Shape, "source"));
}
