//! The attention kernels against their oracle, and the oracle against finite differences. Letters as in the module.

mod cases;
mod ops;
mod refusals;
mod series;

use super::*;
use crate::Ctx;
use crate::arena::Arena;
use crate::isa::{Isa, available};
use crate::rng::{Dropout, Key};
use cases::{Case, Clock, Term, random};
use ops::{Op, Results};
use std::sync::Arc;

/// |got - want| <= 2e-6 * largest |want| + 2e-5 * |want|: a sum's rounding error scales with the sums around it.
fn close(what: &str, got: &[f32], want: &[f64], plus: f64) {
    assert_eq!(got.len(), want.len(), "{what}");
    let largest = want.iter().fold(1e-3, |most: f64, x| most.max(x.abs()));
    for (at, (got, want)) in got.iter().zip(want).enumerate() {
        let (got, want) = (f64::from(*got), want + plus);
        let bound = 2e-6 * (largest + plus.abs()) + 2e-5 * want.abs();
        assert!(
            (got - want).abs() <= bound,
            "{what}[{at}]: got {got}, want {want}, bound {bound}, largest {largest}"
        );
    }
}

fn check(op: Op, case: &Case, isa: Isa) {
    let data = case.data();
    let d_o = random(9, data.tokens() * case.heads * case.v * op.channels(), 1.0);
    let wide: Vec<f64> = d_o.iter().map(|x| f64::from(*x)).collect();
    let (o, lse, grads) = op.naive(&data, &wide);
    let context = |isa| Ctx::with(2, isa, Arc::new(Arena::new()));
    let cx = context(isa);
    // 0.5 is exact in both precisions; accumulating must add to it, overwriting must not see it.
    for (accumulate, plus) in [(false, 0.0), (true, 0.5)] {
        let got = op.run(&cx, &data, &d_o, 0.5, accumulate);
        if isa == Isa::Avx512 {
            let same = got == op.run(&context(Isa::Avx2), &data, &d_o, 0.5, accumulate);
            assert!(same, "{op:?} lengths {:?}: AVX2 and AVX-512 differ", case.lengths);
        }
        let what = |part: &str| {
            let Case {
                lengths,
                heads,
                a,
                v,
                clock,
                term,
                ..
            } = case;
            format!(
                "{op:?} {isa:?} {part} lengths {lengths:?} heads {heads} a {a} v {v} {clock:?} {term:?} + {accumulate}"
            )
        };
        close(&what("o"), &got.o, &o, 0.0);
        if !lse.is_empty() {
            close(&what("lse"), &got.lse, &lse, 0.0);
        }
        let [dq, dk, dv, dpos_w, dts_w] = &got.grads;
        close(&what("dq"), dq, &grads.dq, plus);
        close(&what("dk"), dk, &grads.dk, plus);
        close(&what("dv"), dv, &grads.dv, plus);
        if !matches!(op, Op::Softmax(_)) {
            if case.position {
                close(&what("dpos_w"), dpos_w, &grads.dpos_w, plus);
            }
            if case.clock.is_some() {
                // Sums over thousands of pairs that cancel: the bound follows the size of the terms.
                let most = grads.dts_w_terms.iter().fold(0.0, |most: f64, x| most.max(*x));
                for (at, (got, want)) in dts_w.iter().zip(&grads.dts_w).enumerate() {
                    let (got, want) = (f64::from(*got), want + plus);
                    let bound = 2e-7 * (1.0 + most) + 2e-5 * want.abs();
                    assert!(
                        (got - want).abs() <= bound,
                        "{}[{at}]: got {got}, want {want}",
                        what("dts_w")
                    );
                }
            }
        }
    }
}

fn ops() -> [Op; 4] {
    let dropout = Dropout::new(Key::new(5, 6, 7), 0.3);
    [Op::Hstu, Op::Fuxi, Op::Softmax(Dropout::off()), Op::Softmax(dropout)]
}

const LENGTHS: [usize; 20] = [
    0, 1, 5, 6, 7, 15, 16, 17, 47, 48, 49, 63, 64, 65, 95, 96, 97, 127, 128, 129,
];

#[test]
fn lengths_that_straddle_the_tiles() {
    for op in ops() {
        for isa in available() {
            check(op, &Case::biased(&LENGTHS, 2, 16, 16, Clock::Ascending), isa);
            check(op, &Case::plain(&LENGTHS, 1, 8, 24), isa);
        }
    }
}

#[test]
fn widths_and_heads() {
    let lengths = [33, 0, 1, 70];
    for op in ops() {
        for (heads, a, v) in [
            (1, 8, 8),
            (2, 16, 25),
            (3, 25, 16),
            (8, 32, 32),
            (1, 50, 50),
            (3, 64, 32),
            (4, 64, 64),
            (2, 128, 50),
            (1, 1, 1),
            (5, 9, 130),
        ] {
            check(
                op,
                &Case::biased(&lengths, heads, a, v, Clock::Ascending),
                Isa::detect(),
            );
        }
        check(op, &Case::biased(&lengths, 3, 25, 50, Clock::Ascending), Isa::Portable);
    }
}

/// Enough tokens for wide groups of heads.
fn wide() -> Case {
    Case::biased(&[83; 56], 5, 16, 64, Clock::Ascending)
}

#[test]
fn wide_groups() {
    for op in ops() {
        check(op, &wide(), Isa::detect());
    }
}

#[test]
fn clocks() {
    for op in [Op::Hstu, Op::Fuxi] {
        for clock in [Clock::Ascending, Clock::Ties, Clock::Shuffled, Clock::HugeGaps] {
            check(op, &Case::biased(&[150, 3, 40], 2, 8, 8, clock), Isa::detect());
        }
        let only_position = Case {
            clock: None,
            ..Case::biased(&[150, 3, 40], 2, 8, 8, Clock::Ties)
        };
        check(op, &only_position, Isa::detect());
        // A table hardly longer than the sequence, and one far longer.
        for n in [150, 4000] {
            check(
                op,
                &Case {
                    n,
                    ..Case::biased(&[150, 3, 40], 2, 8, 8, Clock::Ties)
                },
                Isa::detect(),
            );
        }
        check(
            op,
            &Case {
                n: 3,
                ..Case::biased(&[3, 1, 2], 2, 8, 8, Clock::Ties)
            },
            Isa::detect(),
        );
    }
}

/// The terms of time besides the usual 129 buckets.
const TERMS: [Term; 5] = [
    Term::Buckets(17),
    Term::Buckets(33),
    Term::Buckets(65),
    Term::Power(3600.0),
    Term::Power(86_400_000.0),
];

#[test]
fn time_terms() {
    for op in [Op::Hstu, Op::Fuxi] {
        for term in TERMS {
            for clock in [Clock::Ascending, Clock::Ties, Clock::Shuffled, Clock::HugeGaps] {
                for isa in available() {
                    let case = Case::biased(&[150, 3, 0, 40, 1, 17], 2, 8, 8, clock);
                    check(op, &Case { term, ..case }, isa);
                }
            }
            let blocks = Case::biased(&[3, 600, 193], 3, 8, 16, Clock::Ascending);
            check(op, &Case { term, ..blocks }, Isa::detect());
        }
    }
}

#[test]
fn several_blocks_to_a_sequence() {
    for op in ops() {
        check(
            op,
            &Case::biased(&[3, 600, 193, 0, 192], 3, 8, 16, Clock::Ascending),
            Isa::detect(),
        );
    }
    check(Op::Hstu, &Case::biased(&[1, 3000], 1, 8, 8, Clock::Ties), Isa::detect());
}

#[test]
fn nothing_at_all() {
    for op in ops() {
        for lengths in [&[][..], &[0], &[0, 0]] {
            check(op, &Case::biased(lengths, 2, 8, 8, Clock::Ascending), Isa::detect());
        }
    }
}

#[test]
fn the_same_bits_for_any_number_of_threads() {
    let wide = wide();
    let narrow = Case::biased(&[500, 20, 0, 1200, 90, 130, 384, 2], 5, 32, 64, Clock::Ascending);
    let power = Case {
        term: Term::Power(3600.0),
        ..narrow.clone()
    };
    for (op, case) in ops()
        .into_iter()
        .flat_map(|op| [(op, &narrow), (op, &wide), (op, &power)])
    {
        let data = case.data();
        let d_o = random(9, data.tokens() * case.heads * case.v * op.channels(), 1.0);
        let runs: Vec<Results> = (1..=3)
            .map(|threads| op.run(&Ctx::new(threads), &data, &d_o, 0.0, false))
            .collect();
        assert!(runs[0] == runs[1] && runs[0] == runs[2], "{op:?}");
    }
}

#[test]
fn a_second_call_asks_the_system_for_no_memory() {
    for op in ops() {
        let case = Case::biased(&[700, 20, 130], 4, 32, 32, Clock::Ascending);
        let data = case.data();
        let d_o = random(9, data.tokens() * case.heads * case.v * op.channels(), 1.0);
        let cx = Ctx::new(2);
        op.run(&cx, &data, &d_o, 0.0, false);
        let before = cx.arena.system_allocations();
        op.run(&cx, &data, &d_o, 0.0, false);
        assert_eq!(cx.arena.system_allocations(), before, "{op:?}");
        assert_eq!(cx.arena.live_bytes(), 0, "{op:?}");
    }
}

/// Central differences of the oracle's forward pass against its backward pass, for every entry of every input.
#[test]
fn the_oracle_differentiates_itself() {
    let usual = Case::biased(&[6, 1, 4], 2, 3, 2, Clock::Ascending);
    let terms = [Term::Buckets(bucket::BUCKETS), Term::Buckets(33), Term::Power(3600.0)];
    for (op, term) in ops().into_iter().flat_map(|op| terms.map(|term| (op, term))) {
        let data = Case { term, ..usual.clone() }.data();
        let d_o: Vec<f64> = random(9, data.tokens() * 2 * 2 * op.channels(), 1.0)
            .into_iter()
            .map(f64::from)
            .collect();
        let x = data.naive();
        let (_, _, grads) = op.naive(&data, &d_o);
        let loss = |x: &naive::NaiveInputs| {
            let o = match op {
                Op::Hstu => naive::hstu_forward(x),
                Op::Fuxi => naive::fuxi_forward(x),
                Op::Softmax(dropout) => naive::softmax_forward(x, f64::from(0.8f32), data.keep(dropout)).0,
            };
            o.iter().zip(&d_o).map(|(o, g)| o * g).sum::<f64>()
        };
        type Field = fn(&mut naive::NaiveInputs) -> &mut Vec<f64>;
        let fields: [(&str, Field, &Vec<f64>); 5] = [
            ("q", |x| &mut x.q, &grads.dq),
            ("k", |x| &mut x.k, &grads.dk),
            ("v", |x| &mut x.v, &grads.dv),
            ("pos_w", |x| x.pos_w.as_mut().unwrap(), &grads.dpos_w),
            ("ts_w", |x| &mut x.time.as_mut().unwrap().weights, &grads.dts_w),
        ];
        for (name, field, grad) in fields {
            for (at, want) in grad.iter().enumerate() {
                let shifted = |by: f64| {
                    let mut x = x.clone();
                    field(&mut x)[at] += by;
                    loss(&x)
                };
                let slope = (shifted(1e-5) - shifted(-1e-5)) / 2e-5;
                assert!(
                    (slope - want).abs() < 1e-8 + 1e-7 * want.abs(),
                    "{op:?} {name}[{at}]: {slope} {want}"
                );
            }
        }
    }
}
