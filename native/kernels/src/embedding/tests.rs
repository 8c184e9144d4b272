//! Sums of contributions against their oracles: as a dense gradient and as its norm.

use super::naive::{Summand, gradient};
use super::*;
use crate::Ctx;
use crate::exact_sum::ExactSum;
use crate::fault::FaultKind;
use crate::half::{float_to_half, half_to_float};
use crate::mat::{Mat, MatMut};
use crate::rng::{Key, below, word};
use crate::rows::RowsMut;
use crate::testing::*;

/// Sums of up to a few hundred products below two.
pub(super) const TOLERANCE: f64 = 2e-5;

/// Ids in -1..items; `spread` below `items` makes duplicates heavy.
pub(super) fn ids(seed: u64, len: usize, spread: usize) -> Vec<i32> {
    let key = Key::new(seed, 1, 1);
    let id = |w: u32| {
        if w % 16 == 3 {
            -1
        } else {
            below(w, spread as u32) as i32
        }
    };
    (0..len).map(|i| id(word(key, i as u64))).collect()
}

/// Numbers that FP16 holds.
pub(super) fn halves(seed: u64, len: usize) -> Vec<f64> {
    numbers(seed, len)
        .iter()
        .map(|x| f64::from(half_to_float(float_to_half(*x as f32))))
        .collect()
}

pub(super) fn bits_of(values: &[f64]) -> Vec<u16> {
    values.iter().map(|x| float_to_half(*x as f32)).collect()
}

/// Three contributions: looked-up inputs, positives, and many draws with coefficients (some 0).
pub(super) struct Case {
    pub items: usize,
    pub width: usize,
    pub table: Vec<f64>,
    pub summands: Vec<Summand>,
}

pub(super) fn case(rows: usize, width: usize, items: usize, spread: usize) -> Case {
    let per = 5;
    let coef = numbers(4, rows * per)
        .iter()
        .enumerate()
        .map(|(i, x)| if i % 7 == 0 { 0.0 } else { *x })
        .collect();
    let summand = |seed, per, coef, scale, normalized| Summand {
        per,
        ids: ids(seed, rows * per, spread),
        source: numbers(seed + 10, rows * width),
        coef,
        scale,
        normalized,
    };
    let summands = vec![
        summand(1, 1, None, 3.5, None),
        summand(2, 1, Some(numbers(5, rows)), 1.0, Some(1e-6)),
        summand(3, per, Some(coef), 0.5, Some(1e-6)),
    ];
    Case {
        items,
        width,
        table: halves(6, items * width),
        summands,
    }
}

/// The summands of a case in single precision.
pub(super) struct Floats(Vec<(Padded, Option<Padded>)>);

impl Floats {
    pub fn of(case: &Case) -> Floats {
        let single = |s: &Summand| {
            let rows = s.ids.len() / s.per;
            let coef = s.coef.as_ref().map(|coef| Padded::from(coef, rows, s.per));
            (Padded::from(&s.source, rows, case.width), coef)
        };
        Floats(case.summands.iter().map(single).collect())
    }

    pub fn contributions(&self, case: &Case) -> Vec<Contribution> {
        let pairs = case.summands.iter().zip(&self.0);
        pairs
            .map(|(s, (source, coef))| Contribution {
                lane: 0,
                ids: Mat::new(&s.ids, s.ids.len() / s.per, s.per),
                source: source.mat(),
                coef: coef.as_ref().map(Padded::mat),
                scale: s.scale as f32,
                normalized: s.normalized.map(|eps| eps as f32),
                rounded: false,
            })
            .collect()
    }
}

/// Runs an update on fresh copies of `state` (table first) and returns them after it.
pub(super) fn update(
    cx: &Ctx,
    case: &Case,
    half: bool,
    state: &[Padded],
    rule: impl for<'a> FnOnce(&'a mut [Padded]) -> Update<'a>,
) -> Vec<Padded> {
    let Case { items, width, .. } = case;
    let floats = Floats::of(case);
    let contributions = floats.contributions(case);
    let mut state = state.to_vec();
    let mut packed = bits_of(&case.table);
    let (table, rest) = state.split_at_mut(1);
    let rows = match half {
        true => RowsMut::F16(MatMut::new(&mut packed, *items, *width)),
        false => RowsMut::F32(table[0].mat_mut()),
    };
    let args = EmbeddingUpdate {
        table: rows,
        staged: None,
        contributions: &contributions,
        update: rule(rest),
        rounding: None,
        grad_scale: None,
    };
    embedding_update(cx, args).expect("a clean run");
    if half {
        let widened: Vec<f64> = packed.iter().map(|x| f64::from(half_to_float(*x))).collect();
        state[0] = Padded::from(&widened, *items, *width);
    }
    state
}

/// Rows, width, items, and how many of the items are drawn: parts, one pass and two of the sort, heavy duplicates.
pub(super) const CASES: [[usize; 4]; 9] = [
    [0, 8, 5, 5],
    [1, 1, 1, 1],
    [40, 50, 30, 30],
    [300, 7, 9, 2],
    [900, 50, 100, 90],
    [40_000, 4, 37, 37],
    [130, 65, 4097, 4097],
    [700, 16, 5000, 3],
    [9, 3, 70_000, 70_000],
];

pub(super) fn table_of(case: &Case) -> Padded {
    Padded::from(&case.table, case.items, case.width)
}

#[test]
fn dense_gradients_match_their_oracle() {
    let contexts = contexts();
    for [rows, width, items, spread] in CASES {
        let case = case(rows, width, items, spread);
        let (want, _) = gradient(&case.table, width, &case.summands);
        for half in [false, true] {
            for run in on_every_context(&contexts, |cx| {
                let state = [table_of(&case), Padded::unset(items, width)];
                update(cx, &case, half, &state, |rest| Update::Dense {
                    grad: rest[0].overwrite(),
                })
            }) {
                run[0].assert_close(&case.table, 0.0, "the table is only read");
                run[1].assert_close(&want, TOLERANCE * (rows as f64 / 50.0).max(1.0), "gradient");
            }
        }
    }
}

#[test]
fn dense_gradients_accumulate() {
    let case = case(40, 50, 30, 30);
    let before = numbers(20, 30 * 50);
    let (mut want, _) = gradient(&case.table, 50, &case.summands);
    want.iter_mut().zip(&before).for_each(|(g, x)| *g += x);
    let state = [table_of(&case), Padded::from(&before, 30, 50)];
    let run = update(&Ctx::new(2), &case, false, &state, |rest| Update::Dense {
        grad: rest[0].accumulate(),
    });
    run[1].assert_close(&want, TOLERANCE, "gradient");
}

/// The first row of a state matrix, for updates that take a slice.
pub(super) fn row_of(state: &mut Padded) -> &mut [f32] {
    // SAFETY: the matrix is borrowed for as long as its row.
    unsafe { state.mat_mut().row(0) }
}

#[test]
fn square_sum_is_the_norm_of_the_dense_gradient() {
    let contexts = contexts();
    for [rows, width, items, spread] in CASES {
        let case = case(rows, width, items, spread);
        let want: f64 = gradient(&case.table, width, &case.summands)
            .0
            .iter()
            .map(|g| g * g)
            .sum();
        for run in on_every_context(&contexts, |cx| {
            let mut sum = ExactSum::ZERO;
            sum.add(2.0);
            let (mut table, floats) = (table_of(&case), Floats::of(&case));
            let args = EmbeddingUpdate {
                table: RowsMut::F32(table.mat_mut()),
                staged: None,
                contributions: &floats.contributions(&case),
                update: Update::SquareSum { to: &mut sum },
                rounding: None,
                grad_scale: None,
            };
            embedding_update(cx, args).expect("a clean run");
            vec![Padded::from(&[sum.value()], 1, 1)]
        }) {
            run[0].assert_close(&[2.0 + want], TOLERANCE, "square sum");
        }
    }
}

#[test]
fn an_id_outside_the_table_is_refused_and_nothing_is_updated() {
    let (mut table, source, ids) = ([1.0; 6], [1.0; 4], [0, 3]);
    let mut state = [0.0; 3];
    let contribution = Contribution {
        lane: 0,
        ids: Mat::new(&ids, 2, 1),
        source: Mat::new(&source, 2, 2),
        coef: None,
        scale: 1.0,
        normalized: None,
        rounded: false,
    };
    let args = EmbeddingUpdate {
        table: RowsMut::F32(MatMut::new(&mut table, 3, 2)),
        staged: None,
        contributions: &[contribution],
        update: Update::RowAdagrad {
            state: &mut state,
            lr: 0.1,
            eps: 1e-8,
            weight_decay: 0.0,
        },
        rounding: None,
        grad_scale: None,
    };
    let fault = embedding_update(&Ctx::new(1), args).expect_err("a fault");
    assert_eq!((fault.kind, fault.input), (FaultKind::Range, "ids"));
    assert_eq!((table, state), ([1.0; 6], [0.0; 3]));
}
