//! The attention kernels against their oracle, and the oracle against finite differences. Letters as in the module.

use super::softmax_attention::dropout_index;
use super::*;
use crate::arena::Arena;
use crate::isa::Isa;
use crate::mat::{Grad, MatMut};
use crate::rng::{Dropout, Key, uniform, word};
use crate::{Ctx, FaultKind};
use std::sync::Arc;

/// How the events of a sequence are spread in time.
#[derive(Clone, Copy, Debug)]
enum Clock {
    Ascending,
    /// Many events in the same second.
    Ties,
    /// Not in order, queries before and after their keys.
    Shuffled,
    /// Gaps from one second to a hundred thousand years.
    HugeGaps,
}

#[derive(Clone)]
struct Case {
    lengths: Vec<usize>,
    heads: usize,
    a: usize,
    v: usize,
    n: usize,
    position: bool,
    clock: Option<Clock>,
}

/// The operands of a case, in one wide matrix with a margin: every view is strided.
struct Data {
    case: Case,
    wide: Vec<f32>, // [T, 2*h*a + h*v + margin]
    stride: usize,
    offsets: Vec<i32>,
    pos_w: Vec<f32>,
    ts_w: Vec<f32>,
    times: Vec<i64>,
    query_times: Vec<i64>,
}

fn random(purpose: u64, len: usize, scale: f32) -> Vec<f32> {
    let key = Key::new(7, purpose, 1);
    (0..len)
        .map(|i| scale * (2.0 * uniform(word(key, i as u64)) - 1.0))
        .collect()
}

impl Case {
    fn plain(lengths: &[usize], heads: usize, a: usize, v: usize) -> Case {
        let n = lengths.iter().copied().max().unwrap_or(0).max(1) + 3;
        Case {
            lengths: lengths.to_vec(),
            heads,
            a,
            v,
            n,
            position: false,
            clock: None,
        }
    }
    fn biased(lengths: &[usize], heads: usize, a: usize, v: usize, clock: Clock) -> Case {
        Case {
            position: true,
            clock: Some(clock),
            ..Case::plain(lengths, heads, a, v)
        }
    }

    fn data(&self) -> Data {
        let mut offsets = vec![0];
        self.lengths
            .iter()
            .for_each(|n| offsets.push(offsets[offsets.len() - 1] + *n as i32));
        let tokens = offsets[offsets.len() - 1] as usize;
        let stride = 2 * self.heads * self.a + self.heads * self.v + 5;
        let draw = |i: usize, below: u32| i64::from(word(Key(3, 4), i as u64) % below);
        let mut times = Vec::new();
        for length in &self.lengths {
            let mut now = 1_600_000_000;
            for i in 0..*length {
                now += match self.clock {
                    Some(Clock::Ties) => draw(i, 4) / 3,
                    Some(Clock::Shuffled) => draw(i, 2_000_001) - 1_000_000,
                    Some(Clock::HugeGaps) => 1 << draw(i, 43),
                    _ => draw(i, 1 << (1 + draw(i + 1000, 20))),
                };
                times.push(now.clamp(0, 1 << 53));
            }
        }
        // The next event's time, or a little later at the end of a sequence.
        let query_times = (0..tokens)
            .map(|i| {
                if offsets.contains(&(i as i32 + 1)) {
                    times[i] + 3600
                } else {
                    times[i + 1]
                }
            })
            .collect();
        Data {
            case: self.clone(),
            wide: random(1, tokens * stride, 0.7),
            stride,
            offsets,
            pos_w: random(2, 2 * self.n - 1, 0.5),
            ts_w: random(3, bucket::BUCKETS, 0.5),
            times,
            query_times,
        }
    }
}

impl Data {
    fn tokens(&self) -> usize {
        self.times.len()
    }
    fn view(&self, from: usize, cols: usize) -> Mat {
        Mat {
            ptr: self.wide.as_ptr(),
            rows: self.tokens(),
            cols: self.stride,
            stride: self.stride,
        }
        .columns(from, cols)
    }
    fn views(&self) -> [Mat; 3] {
        let (a, v) = (self.case.heads * self.case.a, self.case.heads * self.case.v);
        [self.view(v, a), self.view(v + a, a), self.view(0, v)]
    }
    fn inputs(&self) -> Inputs<'_> {
        let [q, k, v] = self.views();
        let time = self.case.clock.map(|_| TimeBias {
            ts_w: &self.ts_w,
            times: &self.times,
            query_times: &self.query_times,
        });
        let bias = self.case.position.then_some(Bias {
            pos_w: &self.pos_w,
            time,
        });
        Inputs {
            q,
            k,
            v,
            heads: self.case.heads,
            offsets: &self.offsets,
            n: self.case.n,
            bias,
        }
    }
    fn softmax_inputs(&self, dropout: Dropout) -> softmax_attention::Inputs<'_> {
        let [q, k, v] = self.views();
        softmax_attention::Inputs {
            q,
            k,
            v,
            heads: self.case.heads,
            offsets: &self.offsets,
            scale: 0.8,
            dropout,
        }
    }
    fn naive(&self) -> naive::Inputs {
        let widen = |x: &[f32]| x.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>();
        let time = || (widen(&self.ts_w), self.times.clone(), self.query_times.clone());
        let [q, k, v] = self.views().map(|view| {
            // SAFETY: views of `self.wide`.
            (0..view.rows)
                .flat_map(|i| widen(unsafe { view.row(i) }))
                .collect::<Vec<f64>>()
        });
        naive::Inputs {
            q,
            k,
            v,
            heads: self.case.heads,
            offsets: self.offsets.clone(),
            n: self.case.n,
            pos_w: self.case.position.then(|| widen(&self.pos_w)),
            time: self.case.clock.map(|_| time()),
        }
    }
    fn keep(&self, dropout: Dropout) -> impl Fn(usize, usize, usize) -> f64 + '_ {
        move |i, j, head| {
            let first = self
                .offsets
                .iter()
                .rfind(|first| **first as usize <= j)
                .map_or(0, |first| *first as usize);
            f64::from(dropout.factor(dropout_index(i, head, self.case.heads, j - first)))
        }
    }
}

/// What an op computed: the result (and lse), then dq, dk, dv, dpos_w, dts_w.
#[derive(Clone, PartialEq)]
struct Results {
    o: Vec<f32>,
    lse: Vec<f32>,
    grads: [Vec<f32>; 5],
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Hstu,
    Fuxi,
    Softmax(Dropout),
}

impl Op {
    fn channels(self) -> usize {
        if matches!(self, Op::Fuxi) { 3 } else { 1 }
    }

    /// Forward and backward; gradients start as `before` and are overwritten, or added to if `accumulate`.
    fn run(self, cx: &Ctx, data: &Data, d_o: &[f32], before: f32, accumulate: bool) -> Results {
        let (tokens, wide_a, wide_v) = (
            data.tokens(),
            data.case.heads * data.case.a,
            data.case.heads * data.case.v,
        );
        let wide_o = wide_v * self.channels();
        let (mut o, mut lse) = (vec![f32::NAN; tokens * wide_o], vec![0.0; tokens * data.case.heads]);
        let mut grads = [
            tokens * wide_a,
            tokens * wide_a,
            tokens * wide_v,
            data.pos_w.len(),
            data.ts_w.len(),
        ]
        .map(|len| vec![before; len]);
        {
            let [dq, dk, dv, dpos, dts] = &mut grads;
            let grad = |to: &mut Vec<f32>, rows, cols| Grad {
                to: MatMut::new(to, rows, cols),
                accumulate,
            };
            let (dq, dk) = (grad(dq, tokens, wide_a), grad(dk, tokens, wide_a));
            let dv = grad(dv, tokens, wide_v);
            let (pos_len, ts_len) = (data.pos_w.len(), data.ts_w.len());
            let dpos_w = data.case.position.then(|| grad(dpos, 1, pos_len));
            let dts_w = (data.case.position && data.case.clock.is_some()).then(|| grad(dts, 1, ts_len));
            let (d_o, x) = (Mat::new(d_o, tokens, wide_o), data.inputs());
            let (o, lse) = (
                MatMut::new(&mut o, tokens, wide_o),
                MatMut::new(&mut lse, tokens, data.case.heads),
            );
            match self {
                Op::Hstu => {
                    hstu_attention::forward(cx, &hstu_attention::Forward { x, o }).unwrap();
                    let args = hstu_attention::Backward {
                        x,
                        d_o,
                        dq,
                        dk,
                        dv,
                        dpos_w,
                        dts_w,
                    };
                    hstu_attention::backward(cx, &args).unwrap();
                }
                Op::Fuxi => {
                    fuxi_attention::forward(cx, &fuxi_attention::Forward { x, o }).unwrap();
                    let args = fuxi_attention::Backward {
                        x,
                        d_o,
                        dq,
                        dk,
                        dv,
                        dpos_w,
                        dts_w,
                    };
                    fuxi_attention::backward(cx, &args).unwrap();
                }
                Op::Softmax(dropout) => {
                    let x = data.softmax_inputs(dropout);
                    softmax_attention::forward(cx, &softmax_attention::Forward { x, o, lse }).unwrap();
                    let (o, lse) = (o.as_ref(), lse.as_ref());
                    let args = softmax_attention::Backward {
                        x,
                        o,
                        lse,
                        d_o,
                        dq,
                        dk,
                        dv,
                    };
                    softmax_attention::backward(cx, &args).unwrap();
                }
            }
        }
        Results { o, lse, grads }
    }

    fn naive(self, data: &Data, d_o: &[f64]) -> (Vec<f64>, Vec<f64>, naive::Grads) {
        let x = data.naive();
        match self {
            Op::Hstu => (naive::hstu_forward(&x), vec![], naive::hstu_backward(&x, d_o)),
            Op::Fuxi => (naive::fuxi_forward(&x), vec![], naive::fuxi_backward(&x, d_o)),
            Op::Softmax(dropout) => {
                let scale = f64::from(0.8f32);
                let (o, lse) = naive::softmax_forward(&x, scale, data.keep(dropout));
                (o, lse, naive::softmax_backward(&x, scale, data.keep(dropout), d_o))
            }
        }
    }
}

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
    let cx = Ctx::with(2, isa, Arc::new(Arena::new()));
    // 0.5 is exact in both precisions; accumulating must add to it, overwriting must not see it.
    for (accumulate, plus) in [(false, 0.0), (true, 0.5)] {
        let got = op.run(&cx, &data, &d_o, 0.5, accumulate);
        let what = |part: &str| {
            let Case {
                lengths,
                heads,
                a,
                v,
                clock,
                ..
            } = case;
            format!("{op:?} {isa:?} {part} lengths {lengths:?} heads {heads} a {a} v {v} {clock:?} + {accumulate}")
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
                close(&what("dts_w"), dts_w, &grads.dts_w, plus);
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
        for isa in [Isa::Portable, Isa::detect()] {
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

#[test]
fn several_blocks_to_a_sequence() {
    for op in ops() {
        check(
            op,
            &Case::biased(&[3, 800, 385, 0, 384], 3, 8, 16, Clock::Ascending),
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
    for op in ops() {
        let case = Case::biased(&[500, 20, 0, 1200, 90, 130, 384, 2], 5, 32, 64, Clock::Ascending);
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
    let data = Case::biased(&[6, 1, 4], 2, 3, 2, Clock::Ascending).data();
    for op in ops() {
        let d_o: Vec<f64> = random(9, data.tokens() * 2 * 2 * op.channels(), 1.0)
            .into_iter()
            .map(f64::from)
            .collect();
        let x = data.naive();
        let (_, _, grads) = op.naive(&data, &d_o);
        let loss = |x: &naive::Inputs| {
            let o = match op {
                Op::Hstu => naive::hstu_forward(x),
                Op::Fuxi => naive::fuxi_forward(x),
                Op::Softmax(dropout) => naive::softmax_forward(x, f64::from(0.8f32), data.keep(dropout)).0,
            };
            o.iter().zip(&d_o).map(|(o, g)| o * g).sum::<f64>()
        };
        type Field = fn(&mut naive::Inputs) -> &mut Vec<f64>;
        let fields: [(&str, Field, &Vec<f64>); 5] = [
            ("q", |x| &mut x.q, &grads.dq),
            ("k", |x| &mut x.k, &grads.dk),
            ("v", |x| &mut x.v, &grads.dv),
            ("pos_w", |x| x.pos_w.as_mut().unwrap(), &grads.dpos_w),
            ("ts_w", |x| &mut x.time.as_mut().unwrap().0, &grads.dts_w),
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

#[test]
fn bad_input_is_refused_by_name() {
    let cx = Ctx::new(1);
    let data = Case::biased(&[5, 7], 2, 8, 8, Clock::Ascending).data();
    let mut o = vec![0.0; data.tokens() * 16];
    let o = MatMut::new(&mut o, data.tokens(), 16);
    let refuse = |x: Inputs, kind: FaultKind, input: &str, got: &str| {
        let fault = hstu_attention::forward(&cx, &hstu_attention::Forward { x, o }).unwrap_err();
        assert_eq!(
            (fault.kind, fault.op, fault.input),
            (kind, "hstu_attention", input),
            "{fault}"
        );
        assert!(fault.got.contains(got), "{fault}");
    };
    let x = data.inputs();
    let bias = x.bias.unwrap();
    let time = bias.time.unwrap();
    let with_time = |time: TimeBias<'static>| Inputs {
        bias: Some(Bias {
            time: Some(time),
            ..bias
        }),
        ..x
    };
    fn leak(times: &[i64], at: usize, to: i64) -> &'static [i64] {
        let mut times = times.to_vec();
        times[at] = to;
        times.leak()
    }
    let owned = TimeBias {
        ts_w: time.ts_w.to_vec().leak(),
        times: leak(time.times, 0, time.times[0]),
        query_times: leak(time.query_times, 0, time.query_times[0]),
    };
    refuse(
        Inputs {
            offsets: &[0, 8, 5, 12],
            ..x
        },
        FaultKind::Offsets,
        "offsets",
        "offsets[1] = 8",
    );
    refuse(Inputs { offsets: &[0, 5], ..x }, FaultKind::Offsets, "offsets", "5");
    refuse(
        Inputs { n: 6, ..x },
        FaultKind::Range,
        "offsets",
        "sequence 1 of 7 tokens",
    );
    refuse(Inputs { n: 0, ..x }, FaultKind::Argument, "n", "0");
    refuse(Inputs { heads: 0, ..x }, FaultKind::Argument, "heads", "0");
    refuse(Inputs { heads: 3, ..x }, FaultKind::Shape, "q", "16");
    refuse(
        Inputs {
            k: x.k.columns(0, 8),
            ..x
        },
        FaultKind::Shape,
        "k",
        "12 x 8",
    );
    refuse(
        Inputs {
            v: x.v.columns(0, 8),
            ..x
        },
        FaultKind::Shape,
        "o",
        "12 x 16",
    );
    refuse(
        Inputs {
            bias: Some(Bias {
                pos_w: &[0.0; 3],
                ..bias
            }),
            ..x
        },
        FaultKind::Shape,
        "pos_w",
        "3",
    );
    refuse(
        with_time(TimeBias {
            ts_w: &[0.0; 128],
            ..owned
        }),
        FaultKind::Shape,
        "ts_w",
        "128",
    );
    refuse(
        with_time(TimeBias { times: &[1], ..owned }),
        FaultKind::Shape,
        "times",
        "1",
    );
    let negative = leak(time.times, 4, -1);
    refuse(
        with_time(TimeBias {
            times: negative,
            ..owned
        }),
        FaultKind::Timestamp,
        "times",
        "-1 at index 4",
    );
    let huge = leak(time.query_times, 2, i64::MAX);
    refuse(
        with_time(TimeBias {
            query_times: huge,
            ..owned
        }),
        FaultKind::Timestamp,
        "query_times",
        "at index 2",
    );
}
