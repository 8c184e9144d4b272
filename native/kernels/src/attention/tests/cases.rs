//! Batches to test attention on: shapes, clocks and random numbers.

use crate::attention::softmax_attention::dropout_index;
use crate::attention::*;
use crate::rng::{Dropout, Key, uniform, word};

/// How the events of a sequence are spread in time.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    Ascending,
    /// Many events in the same second.
    Ties,
    /// Not in order, queries before and after their keys.
    Shuffled,
    /// Gaps from one second to a hundred thousand years.
    HugeGaps,
}

#[derive(Clone)]
pub struct Case {
    pub lengths: Vec<usize>,
    pub heads: usize,
    pub a: usize,
    pub v: usize,
    pub n: usize,
    pub position: bool,
    pub clock: Option<Clock>,
    pub term: Term,
}

/// The time term of a case.
#[derive(Clone, Copy, Debug)]
pub enum Term {
    /// A table of this many entries.
    Buckets(usize),
    /// The function of the gap, in this unit.
    Power(f32),
}

/// The operands of a case, in one wide matrix with a margin: every view is strided.
pub struct Data {
    pub case: Case,
    pub wide: Vec<f32>, // [T, 2*h*a + h*v + margin]
    pub stride: usize,
    pub offsets: Vec<i32>,
    pub pos_w: Vec<f32>,
    pub ts_w: Vec<f32>,
    pub times: Vec<i64>,
    pub query_times: Vec<i64>,
}

pub fn random(purpose: u64, len: usize, scale: f32) -> Vec<f32> {
    let key = Key::new(7, purpose, 1);
    (0..len)
        .map(|i| scale * (2.0 * uniform(word(key, i as u64)) - 1.0))
        .collect()
}

impl Case {
    pub fn plain(lengths: &[usize], heads: usize, a: usize, v: usize) -> Case {
        let n = lengths.iter().copied().max().unwrap_or(0).max(1) + 3;
        Case {
            lengths: lengths.to_vec(),
            heads,
            a,
            v,
            n,
            position: false,
            clock: None,
            term: Term::Buckets(bucket::BUCKETS),
        }
    }
    pub fn biased(lengths: &[usize], heads: usize, a: usize, v: usize, clock: Clock) -> Case {
        Case {
            position: true,
            clock: Some(clock),
            ..Case::plain(lengths, heads, a, v)
        }
    }

    pub fn data(&self) -> Data {
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
            ts_w: match self.term {
                Term::Buckets(entries) => random(3, entries, 0.5),
                Term::Power(_) => vec![0.7, -0.4, 1.2],
            },
            times,
            query_times,
        }
    }
}

impl Data {
    pub fn tokens(&self) -> usize {
        self.times.len()
    }
    pub fn view(&self, from: usize, cols: usize) -> Mat {
        Mat {
            ptr: self.wide.as_ptr(),
            rows: self.tokens(),
            cols: self.stride,
            stride: self.stride,
        }
        .columns(from, cols)
    }
    pub fn views(&self) -> [Mat; 3] {
        let (a, v) = (self.case.heads * self.case.a, self.case.heads * self.case.v);
        [self.view(v, a), self.view(v + a, a), self.view(0, v)]
    }
    pub fn inputs(&self) -> Inputs<'_> {
        let [q, k, v] = self.views().map(Panels::from);
        let time = self.case.clock.map(|_| TimeBias {
            term: match self.case.term {
                Term::Buckets(_) => TimeTerm::Buckets(&self.ts_w),
                Term::Power(unit) => TimeTerm::Power {
                    weights: &self.ts_w,
                    unit,
                },
            },
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
    pub fn softmax_inputs(&self, dropout: Dropout) -> softmax_attention::SoftmaxInputs<'_> {
        let [q, k, v] = self.views().map(Panels::from);
        softmax_attention::SoftmaxInputs {
            q,
            k,
            v,
            heads: self.case.heads,
            offsets: &self.offsets,
            scale: 0.8,
            dropout,
        }
    }
    pub fn naive(&self) -> naive::NaiveInputs {
        let widen = |x: &[f32]| x.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>();
        let time = || naive::Time {
            weights: widen(&self.ts_w),
            times: self.times.clone(),
            query_times: self.query_times.clone(),
            unit: match self.case.term {
                Term::Buckets(_) => None,
                Term::Power(unit) => Some(f64::from(unit)),
            },
        };
        let [q, k, v] = self.views().map(|view| {
            // SAFETY: views of `self.wide`.
            (0..view.rows)
                .flat_map(|i| widen(unsafe { view.row(i) }))
                .collect::<Vec<f64>>()
        });
        naive::NaiveInputs {
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
    pub fn keep(&self, dropout: Dropout) -> impl Fn(usize, usize, usize) -> f64 + '_ {
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
