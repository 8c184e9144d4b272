//! Optimiser steps and elementwise passes against plain double-precision loops; distributions against their moments.

use super::naive::Step;
use super::*;
use crate::exact_sum::ExactSum;
use crate::fault::{FaultKind, Outcome};
use crate::mat::MatMut;
use crate::rng::Key;
use crate::rows::RowsMut;
use crate::testing::*;

const LENGTHS: [usize; 8] = [0, 1, 7, 8, 9, 1000, TILE, 2 * TILE + 3];

fn floats(seed: u64, len: usize) -> Vec<f32> {
    numbers(seed, len).iter().map(|x| *x as f32).collect()
}

fn hyper(step: u64) -> Adam {
    Adam {
        lr: 1e-2,
        beta1: 0.9,
        beta2: 0.98,
        eps: 1e-8,
        weight_decay: 0.1,
        step,
    }
}

#[test]
fn adamw_follows_its_oracle_for_several_steps() {
    for set in contexts() {
        for len in LENGTHS {
            let mut bits: Option<Vec<u32>> = None;
            for cx in &set {
                let (mut p, mut m, mut v) = (floats(1, len), vec![0.0; len], vec![0.0; len]);
                let mut want: Vec<Step> = p
                    .iter()
                    .map(|p| Step {
                        p: f64::from(*p),
                        m: 0.0,
                        v: 0.0,
                    })
                    .collect();
                let scale = 0.25f32;
                for step in 1..=3 {
                    let g = floats(10 + step, len);
                    let (p, m, v) = (&mut p[..], &mut m[..], &mut v[..]);
                    adamw(
                        cx,
                        AdamW {
                            p,
                            g: &g,
                            m,
                            v,
                            hyper: hyper(step),
                            grad_scale: Some(&scale),
                        },
                    )
                    .expect("a step");
                    for (at, g) in want.iter_mut().zip(&g) {
                        let before = std::mem::replace(at, Step { p: 0.0, m: 0.0, v: 0.0 });
                        *at = naive::adamw(&hyper(step), before, f64::from(*g) * 0.25);
                    }
                }
                for (i, want) in want.iter().enumerate() {
                    let close = |got: f32, want: f64| (f64::from(got) - want).abs() <= 1e-6 + 2e-6 * want.abs();
                    assert!(
                        close(p[i], want.p) && close(m[i], want.m) && close(v[i], want.v),
                        "{len} [{i}]"
                    );
                }
                let now = p.iter().chain(&m).chain(&v).map(|x| x.to_bits()).collect();
                assert!(
                    bits.get_or_insert_with(|| Vec::clone(&now)) == &now,
                    "threads change the bits"
                );
            }
        }
    }
}

#[test]
fn square_sum_is_ordered_and_accurate() {
    for set in contexts() {
        for len in LENGTHS {
            let x = floats(1, len);
            let want: f64 = x.iter().map(|x| f64::from(*x).powi(2)).sum();
            let sums: Vec<ExactSum> = set
                .iter()
                .map(|cx| {
                    let mut sum = ExactSum::ZERO;
                    sum.add(2.0);
                    square_sum(cx, &x, &mut sum, true).expect("a sum");
                    let mut alone = sum;
                    square_sum(cx, &x, &mut alone, false).expect("a sum");
                    assert!((alone.value() - want).abs() <= 1e-6 * want);
                    let cut = x.len().min(TILE);
                    let mut parts = ExactSum::ZERO;
                    square_sum(cx, &x[cut..], &mut parts, false).expect("a sum");
                    square_sum(cx, &x[..cut], &mut parts, true).expect("a sum");
                    assert_eq!(parts, alone, "two pieces are the whole");
                    sum
                })
                .collect();
            assert!(
                (sums[0].value() - want - 2.0).abs() <= 1e-6 * (want + 2.0),
                "{} {want}",
                sums[0].value()
            );
            assert!(sums.iter().all(|sum| sum == &sums[0]));
        }
    }
}

#[test]
fn clipping_scales_down_only_and_refuses_what_is_not_finite() {
    let mut scale = 0.0;
    let of = |x: f64| {
        let mut sum = ExactSum::ZERO;
        sum.add(x);
        [sum]
    };
    clip_scale(&of(16.0), 1.0, &mut scale).expect("a scale");
    assert_eq!(scale, 0.25);
    clip_scale(&[of(7.0), of(9.0)].concat(), 1.0, &mut scale).expect("a scale");
    assert_eq!(scale, 0.25);
    clip_scale(&of(16.0), 5.0, &mut scale).expect("a scale");
    assert_eq!(scale, 1.0);
    clip_scale(&of(0.0), 1.0, &mut scale).expect("a scale");
    assert_eq!(scale, 1.0);
    for bad in [f64::NAN, f64::INFINITY] {
        assert_eq!(
            clip_scale(&of(bad), 1.0, &mut scale).map_err(|f| f.kind),
            Err(FaultKind::NotFinite)
        );
    }
    assert_eq!(
        clip_scale(&of(1.0), 0.0, &mut scale).map_err(|f| f.kind),
        Err(FaultKind::Argument)
    );
}

#[test]
fn elementwise_passes_do_what_they_say() {
    for cx in contexts().iter().flatten() {
        for len in LENGTHS {
            let (x, before) = (floats(1, len), floats(2, len));
            let mut y = before.clone();
            add(cx, -0.5, &x, &mut y).expect("add");
            assert!((0..len).all(|i| (y[i] - (before[i] - 0.5 * x[i])).abs() < 1e-6));
            let mut y = before.clone();
            lerp(cx, 0.25, &x, &mut y).expect("lerp");
            assert!((0..len).all(|i| (y[i] - (0.75 * before[i] + 0.25 * x[i])).abs() < 1e-6));
            let (mut half, mut back) = (vec![0; len], vec![0.0; len]);
            cast_to_f16(cx, &x, &mut half).expect("cast");
            cast_to_f32(cx, &half, &mut back).expect("cast");
            let mut again = vec![0; len];
            cast_to_f16(cx, &back, &mut again).expect("cast");
            assert_eq!(half, again, "FP16 -> f32 -> FP16 is the identity");
            assert!((0..len).all(|i| (back[i] - x[i]).abs() <= x[i].abs() / 2048.0 + 3e-8));
        }
    }
}

#[test]
fn fills_have_the_stated_moments_and_do_not_depend_on_threads() {
    let len = 200_001;
    let (key, cx) = (Key::new(1, 0, 5), crate::Ctx::new(2));
    let moments = |x: &[f32]| {
        let mean = x.iter().map(|x| f64::from(*x)).sum::<f64>() / len as f64;
        let variance = x.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / len as f64;
        (mean, variance.sqrt())
    };
    let near = |x: f64, want: f64| (x - want).abs() < 0.01;
    let mut x = vec![0.0; len];
    fill_normal(&cx, key, 0.5, 2.0, &mut x).expect("fill");
    let (mean, std) = moments(&x);
    assert!(near(mean, 0.5) && near(std, 2.0), "normal {mean} {std}");
    let mut alone = vec![0.0; len];
    fill_normal(&crate::Ctx::new(1), key, 0.5, 2.0, &mut alone).expect("fill");
    assert!(alone == x);
    fill_uniform(&cx, key, -1.0, 3.0, &mut x).expect("fill");
    let (mean, std) = moments(&x);
    assert!(near(mean, 1.0) && near(std, 4.0 / 12f64.sqrt()), "uniform {mean} {std}");
    assert!(x.iter().all(|x| (-1.0..3.0).contains(x)));
    // Cut at two deviations the variance falls to 0.7737.
    fill_trunc_normal(
        &cx,
        key,
        TruncNormal {
            mean: 0.0,
            std: 1.0,
            low: -2.0,
            high: 2.0,
        },
        ALL_ROWS,
        RowsMut::F32(MatMut::new(&mut x, 1, len)),
    )
    .expect("fill");
    let (mean, std) = moments(&x);
    assert!(near(mean, 0.0) && near(std, 0.7737f64.sqrt()), "truncated {mean} {std}");
    assert!(x.iter().all(|x| x.abs() <= 2.0));
    fill_constant(&cx, 3.5, &mut x).expect("fill");
    assert!(x.iter().all(|x| *x == 3.5));
}

const ALL_ROWS: EveryRow = EveryRow { first: 0, step: 1 };

#[test]
fn rows_of_a_shard_are_filled_as_those_of_the_whole() {
    let cx = crate::Ctx::new(2);
    let fill = |rows: EveryRow, count: usize, width: usize| {
        let mut to = vec![f32::NAN; count * width];
        let shape = TruncNormal {
            mean: 0.0,
            std: 0.02,
            low: -0.04,
            high: 0.04,
        };
        let mat = RowsMut::F32(MatMut::new(&mut to, count, width));
        fill_trunc_normal(&cx, Key::new(3, 0, 1), shape, rows, mat).expect("fill");
        to
    };
    for (rows, width) in [(0, 8), (1, 5), (23, 7), (300, 50), (64, 16)] {
        let whole = fill(ALL_ROWS, rows, width);
        for step in 1..5 {
            for first in 0..step {
                let owned: Vec<f32> = whole
                    .chunks(width)
                    .skip(first)
                    .step_by(step)
                    .flatten()
                    .copied()
                    .collect();
                assert_eq!(fill(EveryRow { first, step }, owned.len() / width, width), owned);
            }
        }
    }
}

#[test]
fn impossible_options_are_refused() {
    let cx = crate::Ctx::new(1);
    let (mut a, mut b, mut c) = (vec![0.0; 4], vec![0.0; 4], vec![0.0; 4]);
    let far = TruncNormal {
        mean: 0.0,
        std: 1.0,
        low: 5.0,
        high: 6.0,
    };
    let kind = |outcome: Outcome| outcome.map_err(|fault| (fault.kind, fault.input));
    let refused = |input| Err((FaultKind::Argument, input));
    assert_eq!(
        kind(fill_trunc_normal(
            &cx,
            Key(0, 0),
            far,
            ALL_ROWS,
            RowsMut::F32(MatMut::new(&mut a, 1, 4))
        )),
        refused("low, high")
    );
    assert_eq!(
        kind(fill_uniform(&cx, Key(0, 0), 1.0, 0.0, &mut a)),
        refused("low, high")
    );
    let bad = Adam { step: 0, ..hyper(1) };
    let args = AdamW {
        p: &mut a,
        g: &[0.0; 4],
        m: &mut b,
        v: &mut c,
        hyper: bad,
        grad_scale: None,
    };
    assert_eq!(kind(adamw(&cx, args)), refused("step"));
    let args = AdamW {
        p: &mut a,
        g: &[0.0; 3],
        m: &mut b,
        v: &mut c,
        hyper: hyper(1),
        grad_scale: None,
    };
    assert_eq!(kind(adamw(&cx, args)), Err((FaultKind::Shape, "g")));
}
