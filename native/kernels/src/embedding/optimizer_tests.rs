//! Lazy Adam and row-wise AdaGrad against their oracles; lazy Adam against dense Adam where both touch every row.

use super::Update;
use super::naive::gradient;
use super::tests::{CASES, TOLERANCE, case, row_of, table_of, update};
use crate::Ctx;
use crate::optim::{Adam, AdamW, adamw, naive as optim};
use crate::testing::*;

pub(super) fn hyper() -> Adam {
    Adam {
        lr: 1e-2,
        beta1: 0.9,
        beta2: 0.98,
        eps: 1e-8,
        weight_decay: 0.1,
        step: 3,
    }
}

#[test]
fn lazy_adam_moves_touched_rows_as_adam_would_and_no_other() {
    let contexts = contexts();
    for [rows, width, items, spread] in CASES {
        let case = case(rows, width, items, spread);
        let (g, touched) = gradient(&case.table, width, &case.summands);
        let m0 = numbers(30, items * width);
        let v0: Vec<f64> = numbers(31, items * width).iter().map(|x| x * x + 0.1).collect();
        let (mut p, mut m, mut v) = (case.table.clone(), m0.clone(), v0.clone());
        for i in (0..items * width).filter(|i| touched[i / width]) {
            let step = optim::adamw(
                &hyper(),
                optim::Step {
                    p: p[i],
                    m: m[i],
                    v: v[i],
                },
                g[i],
            );
            (p[i], m[i], v[i]) = (step.p, step.m, step.v);
        }
        for half in [false, true] {
            for run in on_every_context(&contexts, |cx| {
                let state = [
                    table_of(&case),
                    Padded::from(&m0, items, width),
                    Padded::from(&v0, items, width),
                ];
                update(cx, &case, half, &state, |rest| {
                    let (m, v) = rest.split_at_mut(1);
                    Update::LazyAdam {
                        m: m[0].mat_mut(),
                        v: v[0].mat_mut(),
                        hyper: hyper(),
                    }
                })
            }) {
                run[0].assert_close(&p, if half { 5e-4 } else { TOLERANCE }, "table");
                run[1].assert_close(&m, TOLERANCE * (rows as f64 / 50.0).max(1.0), "m");
                run[2].assert_close(&v, TOLERANCE * (rows as f64 / 50.0).max(1.0), "v");
            }
        }
    }
}

#[test]
fn lazy_adam_is_dense_adam_when_every_row_is_touched() {
    let (items, width) = (60, 24);
    let mut case = case(600, width, items, items);
    case.summands[0].ids = (0..600).map(|i| i % items as i32).collect();
    let cx = Ctx::new(2);
    let zero = Padded::from(&vec![0.0; items * width], items, width);
    let state = [table_of(&case), zero.clone(), zero];
    let lazy = update(&cx, &case, false, &state, |rest| {
        let (m, v) = rest.split_at_mut(1);
        Update::LazyAdam {
            m: m[0].mat_mut(),
            v: v[0].mat_mut(),
            hyper: hyper(),
        }
    });
    let dense = update(&cx, &case, false, &state[..2], |rest| Update::Dense {
        grad: rest[0].overwrite(),
    });
    let flat = |x: &Padded| -> Vec<f32> {
        // SAFETY: rows of the test's own matrix.
        (0..items).flat_map(|i| unsafe { x.mat().row(i) }.to_vec()).collect()
    };
    let (mut p, g) = (flat(&state[0]), flat(&dense[1]));
    let (mut m, mut v) = (vec![0.0; p.len()], vec![0.0; p.len()]);
    let args = AdamW {
        p: &mut p,
        g: &g,
        m: &mut m,
        v: &mut v,
        hyper: hyper(),
        grad_scale: None,
    };
    adamw(&cx, args).expect("a step");
    assert!(
        flat(&lazy[0]) == p && flat(&lazy[1]) == m && flat(&lazy[2]) == v,
        "to the bit"
    );
}

#[test]
fn row_adagrad_matches_its_oracle() {
    let contexts = contexts();
    for [rows, width, items, spread] in CASES {
        let case = case(rows, width, items, spread);
        let (g, touched) = gradient(&case.table, width, &case.summands);
        let (mut p, mut state) = (case.table.clone(), vec![0.5; items]);
        for item in (0..items).filter(|&item| touched[item]) {
            let at = item * width..(item + 1) * width;
            let (row, sum) = optim::row_adagrad(0.1, 1e-8, &p[at.clone()], state[item], &g[at.clone()]);
            p[at].copy_from_slice(&row);
            state[item] = sum;
        }
        for half in [false, true] {
            for run in on_every_context(&contexts, |cx| {
                let start = [table_of(&case), Padded::from(&vec![0.5; items], 1, items)];
                update(cx, &case, half, &start, |rest| Update::RowAdagrad {
                    state: row_of(&mut rest[0]),
                    lr: 0.1,
                    eps: 1e-8,
                    weight_decay: 0.0,
                })
            }) {
                run[0].assert_close(&p, if half { 5e-4 } else { TOLERANCE }, "table");
                run[1].assert_close(&state, TOLERANCE * (rows as f64 / 50.0).max(1.0), "state");
            }
        }
    }
}
