//! Gather, update and draws against their oracles; lazy Adam against dense Adam where both touch every row.

use super::embedding_gather::{Backward, Forward, Positions};
use super::naive::{Gather, Summand, gradient};
use super::*;
use crate::Ctx;
use crate::exact_sum::ExactSum;
use crate::fault::FaultKind;
use crate::half::{float_to_half, half_to_float};
use crate::mat::{Mat, MatMut};
use crate::optim::{Adam, AdamW, adamw, naive as optim};
use crate::rng::{Dropout, Key, below, word};
use crate::rows::{Rows, RowsMut};
use crate::testing::*;

/// Sums of up to a few hundred products below two.
pub(super) const TOLERANCE: f64 = 2e-5;

/// Ids in -1..items; `spread` below `items` makes duplicates heavy.
fn ids(seed: u64, len: usize, spread: usize) -> Vec<i32> {
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
fn halves(seed: u64, len: usize) -> Vec<f64> {
    numbers(seed, len)
        .iter()
        .map(|x| f64::from(half_to_float(float_to_half(*x as f32))))
        .collect()
}

fn bits_of(values: &[f64]) -> Vec<u16> {
    values.iter().map(|x| float_to_half(*x as f32)).collect()
}

#[test]
fn gather_matches_its_oracle_forward_and_back() {
    let contexts = contexts();
    let batches: [&[i32]; 6] = [
        &[0],
        &[0, 0, 0],
        &[0, 1],
        &[0, 5, 5, 69],
        &[0, 64, 128, 129],
        &[0, 3, 3, 70, 71, 200],
    ];
    for (i, offsets) in batches.into_iter().enumerate() {
        let (t, d, v) = (offsets[offsets.len() - 1] as usize, [50, 8, 1, 17, 64, 100][i], 40);
        let longest = offsets.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0) as usize;
        let positions = (i != 2).then(|| (numbers(5, (longest + 2) * d), offsets.to_vec()));
        let dropout = if i % 2 == 0 {
            Dropout::off()
        } else {
            Dropout::new(Key::new(3, 2, 1), 0.3)
        };
        let p = Gather {
            width: d,
            table: halves(1, v * d),
            ids: ids(2, t, v),
            scale: 7.07,
            positions,
            dropout,
        };
        let before = if i % 3 == 0 {
            numbers(6, t * d)
        } else {
            vec![0.0; t * d]
        };
        let want = p.forward(&before);
        let dout = numbers(7, t * d);
        let (dx_want, dpos_want) = p.backward(&dout);
        let (table, packed) = (Padded::from(&p.table, v, d), bits_of(&p.table));
        for half in [false, true] {
            let runs = on_every_context(&contexts, |cx| {
                let mut out = if i % 3 == 0 {
                    Padded::from(&before, t, d)
                } else {
                    Padded::unset(t, d)
                };
                let places = longest + 2;
                let pos = p.positions.as_ref().map(|(table, _)| Padded::from(table, places, d));
                let args = Forward {
                    table: if half {
                        Rows::F16(Mat::new(&packed, v, d))
                    } else {
                        Rows::F32(table.mat())
                    },
                    ids: &p.ids,
                    scale: 7.07,
                    positions: pos.as_ref().map(|pos| Positions {
                        table: pos.mat(),
                        offsets,
                    }),
                    dropout,
                    accumulate: i % 3 == 0,
                    out: out.mat_mut(),
                };
                embedding_gather::forward(cx, args).expect("a clean run");
                let (mut dx, mut dpos) = (Padded::from(&dout, t, d), Padded::unset(places, d));
                let positions = pos.is_some().then(|| Positions {
                    table: dpos.overwrite(),
                    offsets,
                });
                embedding_gather::backward(
                    cx,
                    Backward {
                        dropout,
                        dx: dx.mat_mut(),
                        positions,
                    },
                )
                .expect("a clean run");
                if pos.is_none() {
                    dpos = Padded::from(&[], 0, d);
                }
                vec![out, dx, dpos]
            });
            for run in runs {
                run[0].assert_close(&want, TOLERANCE, "out");
                run[1].assert_close(&dx_want, TOLERANCE, "dx");
                run[2].assert_close(&dpos_want, TOLERANCE, "dpos");
            }
        }
    }
}

#[test]
fn gather_refuses_sequences_longer_than_the_positions() {
    let (table, pos, mut out) = ([0.0; 4], [0.0; 4], [0.0; 6]);
    let args = Forward {
        table: Rows::F32(Mat::new(&table, 2, 2)),
        ids: &[0, 1, 1],
        scale: 1.0,
        positions: Some(Positions {
            table: Mat::new(&pos, 2, 2),
            offsets: &[0, 3],
        }),
        dropout: Dropout::off(),
        accumulate: false,
        out: MatMut::new(&mut out, 3, 2),
    };
    let fault = embedding_gather::forward(&Ctx::new(1), args).expect_err("a fault");
    assert_eq!((fault.kind, fault.input), (FaultKind::Range, "offsets"));
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
                ids: Mat::new(&s.ids, s.ids.len() / s.per, s.per),
                source: source.mat(),
                coef: coef.as_ref().map(Padded::mat),
                scale: s.scale as f32,
                normalized: s.normalized.map(|eps| eps as f32),
            })
            .collect()
    }
}

/// Runs an update on fresh copies of `state` (table first) and returns them after it.
fn update(
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

#[test]
fn an_id_outside_the_table_is_refused_and_nothing_is_updated() {
    let (mut table, source, ids) = ([1.0; 6], [1.0; 4], [0, 3]);
    let mut state = [0.0; 3];
    let contribution = Contribution {
        ids: Mat::new(&ids, 2, 1),
        source: Mat::new(&source, 2, 2),
        coef: None,
        scale: 1.0,
        normalized: None,
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

/// Draws of a sampler on 1 and 3 threads, which must agree.
fn draws(sampler: Sampler, tokens: usize, per: usize) -> Vec<i32> {
    let run = |threads| {
        let mut ids = vec![-9; tokens * per];
        draw_negatives(
            &Ctx::new(threads),
            Key::new(5, 6, 7),
            sampler,
            MatMut::new(&mut ids, tokens, per),
        )
        .expect("draws");
        ids
    };
    let ids = run(1);
    assert!(ids == run(3));
    ids
}

fn shares(ids: &[i32], items: usize) -> Vec<f64> {
    let mut counts = vec![0.0; items];
    ids.iter().for_each(|&id| counts[id as usize] += 1.0 / ids.len() as f64);
    counts
}

#[test]
fn draws_follow_the_stated_distribution() {
    let ids = draws(Sampler::Uniform { first: 1, count: 10 }, 1001, 129);
    let uniform = shares(&ids, 11);
    assert_eq!(uniform[0], 0.0);
    assert!(
        uniform[1..].iter().all(|share| (share - 0.1).abs() < 0.004),
        "{uniform:?}"
    );

    let weights = [0.0, 1.0, 2.0, 3.0, 0.0, 10.0, 4.0];
    let (mut threshold, mut alias, mut logq) = ([0.0; 7], [0; 7], [0.0; 7]);
    let to = Alias {
        threshold: &mut threshold,
        alias: &mut alias,
        logq: &mut logq,
    };
    alias_table(&Ctx::new(1), &weights, to).expect("a table");
    let drawn = shares(
        &draws(
            Sampler::Popularity {
                threshold: &threshold,
                alias: &alias,
            },
            1000,
            128,
        ),
        7,
    );
    for (i, weight) in weights.iter().enumerate() {
        let want = f64::from(*weight) / 20.0;
        assert!((drawn[i] - want).abs() < 0.005, "{i}: {drawn:?}");
        assert!((f64::from(logq[i]).exp() - want).abs() < 1e-6);
    }

    let in_batch = shares(
        &draws(
            Sampler::InBatch {
                positives: &[-1, 3, 3, -1, 0, 3],
            },
            100,
            100,
        ),
        4,
    );
    assert!(
        (in_batch[3] - 0.75).abs() < 0.02 && (in_batch[0] - 0.25).abs() < 0.02,
        "{in_batch:?}"
    );
    assert!(
        draws(Sampler::InBatch { positives: &[-1, -1] }, 2, 3)
            .iter()
            .all(|id| *id == -1)
    );
}

#[test]
fn impossible_samplers_are_refused() {
    let mut ids = [0; 4];
    let ids = MatMut::new(&mut ids, 2, 2);
    for sampler in [
        Sampler::Uniform { first: 0, count: 0 },
        Sampler::Uniform { first: -1, count: 3 },
    ] {
        let fault = draw_negatives(&Ctx::new(1), Key(0, 0), sampler, ids).expect_err("a fault");
        assert_eq!(fault.kind, FaultKind::Argument);
    }
    for weights in [[0.0, 0.0], [1.0, -1.0], [1.0, f32::NAN]] {
        let (mut threshold, mut alias, mut logq) = ([0.0; 2], [0; 2], [0.0; 2]);
        let to = Alias {
            threshold: &mut threshold,
            alias: &mut alias,
            logq: &mut logq,
        };
        assert_eq!(
            alias_table(&Ctx::new(1), &weights, to).map_err(|f| f.kind),
            Err(FaultKind::Argument)
        );
    }
}
