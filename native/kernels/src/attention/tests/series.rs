//! The series of the time function against the function in double precision, and attention with it against the oracle.

use super::cases::{Case, Clock, Term};
use super::{check, ops::Op};
use crate::attention::bias::BlockPair;
use crate::attention::plan::BLOCK;
use crate::attention::power::{Power, WEIGHTS, softplus};
use crate::attention::series::{Room, SERIES, Series, VALUES};
use crate::attention::{TimeBias, TimeTerm};
use crate::isa::{Isa, available};
use crate::rng::{Key, word};
use crate::simd::{Kernel, Simd, dispatch};

const UNIT: f32 = 86_400.0;

/// A block pair's series; how many queries it serves goes to `served`.
struct Compare<'a> {
    time: TimeBias<'a>,
    weights: [f32; WEIGHTS],
    pair: BlockPair,
    served: &'a mut usize,
    what: String,
}

impl Kernel for Compare<'_> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        let (mut series, mut values) = (vec![f32::NAN; SERIES], vec![f32::NAN; VALUES]);
        let power = Power::new(&self.weights, UNIT);
        let room = Room {
            functions: WEIGHTS,
            series: series.as_mut_ptr(),
            values: values.as_mut_ptr(),
        };
        // SAFETY: by the contract of `dispatch`; the room is large enough.
        let found = unsafe { Series::of::<V>(&power, &self.time, &self.pair, room) };
        let Some(Series { terms, first, .. }) = found else {
            *self.served = 0;
            return;
        };
        *self.served = self.pair.queries - first;
        assert!(series[..(WEIGHTS + 1) * terms * BLOCK].chunks(BLOCK).all(|row| {
            // Products read queries up to whole tiles.
            row[..self.pair.queries.next_multiple_of(6).min(self.pair.keys)]
                .iter()
                .all(|x| x.is_finite())
        }));
        let scale = 1.0 / -f64::from(power.rate);
        for query in first..self.pair.queries {
            let exact: Vec<[[f64; 2]; WEIGHTS]> = (0..self.pair.keys)
                .map(|key| {
                    self.functions(
                        self.time.query_times[self.pair.query + query] - self.time.times[self.pair.key + key],
                    )
                })
                .collect();
            for function in 0..WEIGHTS {
                let largest = |part: usize| exact.iter().fold(0.0, |most: f64, x| most.max(x[function][part].abs()));
                let most = if function == 0 { 1.0 } else { scale };
                let bound = 2e-6 * largest(0) + 3e-7 * largest(1).min(most);
                for (key, exact) in exact.iter().enumerate() {
                    let got: f64 = (0..terms)
                        .map(|term| {
                            let coefficient = series[(function * terms + term) * BLOCK + query];
                            f64::from(coefficient) * f64::from(series[(WEIGHTS * terms + term) * BLOCK + key])
                        })
                        .sum();
                    let error = (got - exact[function][0]).abs();
                    let what = &self.what;
                    assert!(
                        error <= bound,
                        "{what}: function {function} query {query} key {key}: {error} > {bound}"
                    );
                }
            }
        }
    }
}

impl Compare<'_> {
    /// E, P E and E P log2(T) of a gap, each also without E.
    fn functions(&self, gap: i64) -> [[f64; 2]; WEIGHTS] {
        let beta = softplus(f64::from(self.weights[1]));
        let t = gap.unsigned_abs() as f64 / f64::from(UNIT);
        let (power, log) = if t > 0.0 { (t.powf(beta), t.log2()) } else { (0.0, 0.0) };
        let value = (-softplus(-f64::from(self.weights[2])) * power).exp();
        [1.0, power, power * log].map(|factor| [value * factor, factor])
    }
}

/// Times of 900 events: minutes apart, now and then days; after `tied` steps of the clock one that moves.
fn events(pause: i64, tied: i64) -> Vec<i64> {
    let draw = |i: usize, below: i64| i64::from(word(Key(8, 9), i as u64)) % below;
    let mut now = 1_600_000_000;
    (0..=900)
        .map(|i| {
            now += match i as i64 % tied {
                0 => draw(i, 120) * if draw(i + 1000, 20) == 0 { pause } else { 1 },
                _ => 0,
            };
            now
        })
        .collect()
}

#[test]
fn is_as_exact_as_the_function_wherever_it_serves() {
    let mut all = 0;
    for (pause, tied) in [(1500, 1), (1500, 50), (1, 1), (50_000, 1), (0, 1)] {
        let times = events(pause, tied);
        for beta in [-2.0, -0.4, 0.5413, 1.9, 4.0] {
            for gamma in [-2.0, 1.4, 6.0] {
                for (queries, keys) in [
                    (288..576, 0..288),
                    (576..865, 0..288),
                    (576..603, 288..576),
                    (96..192, 0..96),
                ] {
                    for isa in available() {
                        let (mut served, weights) = (0, [0.02, beta, gamma]);
                        let compare = Compare {
                            time: TimeBias {
                                term: TimeTerm::Power {
                                    weights: &weights,
                                    unit: UNIT,
                                },
                                times: &times[..900],
                                query_times: &times[1..],
                            },
                            weights,
                            pair: BlockPair::new(
                                0,
                                queries.start..queries.end.min(queries.start + BLOCK),
                                keys.clone(),
                            ),
                            served: &mut served,
                            what: format!("{isa:?} pause {pause} tied {tied} {weights:?} {queries:?} {keys:?}"),
                        };
                        // SAFETY: `isa` is one this CPU has.
                        unsafe { dispatch(isa, compare) };
                        all += served;
                    }
                }
            }
        }
    }
    assert!(all > 50_000, "{all}");
}

#[test]
fn refuses_queries_before_a_key_and_keys_that_are_not_visible() {
    let mut times = events(1500, 1);
    let served = |times: &[i64], pair: BlockPair| {
        let (mut served, weights) = (0, [0.02, 0.5413, 6.0]);
        let compare = Compare {
            time: TimeBias {
                term: TimeTerm::Power {
                    weights: &weights,
                    unit: UNIT,
                },
                times: &times[..900],
                query_times: &times[1..],
            },
            weights,
            pair,
            served: &mut served,
            what: String::new(),
        };
        // SAFETY: the detected one.
        unsafe { dispatch(Isa::detect(), compare) };
        served
    };
    let far = BlockPair::new(0, 576..864, 0..288);
    assert_eq!(served(&times, far), 288);
    assert_eq!(served(&times, BlockPair::new(0, 0..288, 0..288)), 0);
    // A key in the future of the first 24 queries.
    times[7] = times[600];
    assert!((1..=288 - 24).contains(&served(&times, far)));
    times[7] = times[899];
    assert_eq!(served(&times, far), 0);
}

#[test]
fn attention_with_series() {
    for (heads, v) in [(1, 5), (2, 25), (3, 50), (1, 64)] {
        for (clock, unit) in [
            (Clock::Ascending, 86_400_000.0),
            (Clock::Ascending, 1e6),
            (Clock::Ties, 3600.0),
        ] {
            let case = Case::biased(&[3, 900, 300, 700], heads, 8, v, clock);
            check(
                Op::Fuxi,
                &Case {
                    term: Term::Power(unit),
                    ..case
                },
                Isa::detect(),
            );
        }
    }
}
