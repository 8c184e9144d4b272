//! Top-k and scores against a full sort, at sizes around the tile, the group and the range. Vectors hold small integers,
//! so scores are exact in f32, ties are plenty and the comparison is of ids, not of rounding.

mod divided;

use super::naive::Problem;
use super::*;
use crate::fault::FaultKind;
use crate::half::float_to_half;
use crate::mat::{Mat, MatMut};
use crate::rng::{Key, below, word};
use crate::rows::Rows;
use crate::testing::contexts;
use crate::{Ctx, Outcome};

fn integers(seed: u64, len: usize, span: u32) -> Vec<f64> {
    let key = Key::new(seed, 2, 2);
    (0..len)
        .map(|i| f64::from(below(word(key, i as u64), span)) - f64::from(span / 2))
        .collect()
}

fn problem(shape: [usize; 3]) -> Problem {
    let [q, v, d] = shape;
    let excluded = (0..q)
        .map(|q| match (q % 4, v) {
            (_, 0) | (0, _) => vec![],
            // Out of order, with repeats and a -1; or everything.
            (1, _) => integers(q as u64, 30, v as u32)
                .iter()
                .map(|x| (*x as i64 + v as i64 / 2) as i32)
                .chain([-1])
                .collect(),
            (2, _) if v < 100 => (0..v as i32).rev().collect(),
            _ => vec![0, v as i32 - 1, 0],
        })
        .collect();
    Problem {
        shape,
        queries: integers(1, q * d, 5),
        table: integers(2, v * d, 5),
        excluded,
    }
}

struct Run<'a> {
    cx: &'a Ctx,
    p: &'a Problem,
    half: bool,
}

impl<'a> Run<'a> {
    fn new(cx: &'a Ctx, p: &'a Problem) -> Run<'a> {
        Run { cx, p, half: false }
    }

    fn with<R>(&self, body: impl FnOnce(Mat, Rows, Excluded) -> R) -> R {
        let [q, v, d] = self.p.shape;
        let queries: Vec<f32> = self.p.queries.iter().map(|x| *x as f32).collect();
        let table: Vec<f32> = self.p.table.iter().map(|x| *x as f32).collect();
        let halves: Vec<u16> = table.iter().map(|x| float_to_half(*x)).collect();
        let mut offsets = vec![0];
        for list in &self.p.excluded {
            offsets.push(offsets[offsets.len() - 1] + list.len() as i32);
        }
        let ids = self.p.excluded.concat();
        let rows = if self.half {
            Rows::F16(Mat::new(&halves, v, d))
        } else {
            Rows::F32(Mat::new(&table, v, d))
        };
        body(
            Mat::new(&queries, q, d),
            rows,
            Excluded {
                offsets: &offsets,
                ids: &ids,
            },
        )
    }

    fn top_k(&self, k: usize) -> Result<(Vec<i32>, Vec<f32>), crate::Fault> {
        let q = self.p.shape[0];
        let (mut ids, mut scores) = (vec![7; q * k], vec![7.0; q * k]);
        self.with(|queries, table, excluded| {
            let (ids, scores) = (MatMut::new(&mut ids, q, k), MatMut::new(&mut scores, q, k));
            top_k(
                self.cx,
                TopK {
                    queries,
                    table,
                    excluded: Some(excluded),
                    ids,
                    scores,
                },
            )
        })?;
        Ok((ids, scores))
    }

    fn scores(&self, targets: &[i32]) -> Result<Vec<f32>, crate::Fault> {
        let mut scores = vec![7.0; targets.len()];
        self.with(|queries, table, _| {
            let scores = &mut scores;
            target_scores(
                self.cx,
                TargetScores {
                    queries,
                    table,
                    targets,
                    scores,
                },
            )
        })?;
        Ok(scores)
    }

    fn ahead(&self, bars: &[f32], places: &[i32]) -> Result<Vec<i32>, crate::Fault> {
        let mut counts = vec![7; bars.len()];
        self.with(|queries, table, excluded| {
            let args = CountAhead {
                queries,
                table,
                bars,
                places,
                excluded: Some(excluded),
                counts: &mut counts,
            };
            count_ahead(self.cx, args)
        })?;
        Ok(counts)
    }

    /// 1-based, as if the targets were not excluded.
    fn ranks(&self, targets: &[i32]) -> Result<Vec<i32>, crate::Fault> {
        let ahead = self.ahead(&self.scores(targets)?, targets)?;
        Ok(ahead.into_iter().map(|count| count + 1).collect())
    }

    fn exp_sums(&self, bars: &[f32], bits: usize) -> Result<Vec<i64>, crate::Fault> {
        let mut sums = vec![7; bars.len()];
        self.with(|queries, table, _| {
            let sums = &mut sums;
            exp_sum(
                self.cx,
                ExpSum {
                    queries,
                    table,
                    bars,
                    bits,
                    sums,
                },
            )
        })?;
        Ok(sums)
    }
}

const SHAPES: [[usize; 3]; 10] = [
    [0, 10, 4],
    [3, 0, 4],
    [1, 1, 1],
    [5, 15, 3],
    [6, 16, 8],
    [7, 17, 9],
    [95, 33, 5],
    [97, 64, 16],
    [2, 4097, 7],
    [13, 6200, 2],
];

#[test]
fn top_k_equals_a_full_sort() {
    let contexts = contexts();
    for shape in SHAPES {
        let p = problem(shape);
        let rankings: Vec<_> = (0..shape[0]).map(|q| p.ranking(q)).collect();
        for k in [0, 1, 10, shape[1] + 2].into_iter().filter(|k| k * shape[0] < 50_000) {
            for (cx, half) in contexts.iter().flatten().zip([false, true].into_iter().cycle()) {
                let (ids, scores) = Run { cx, p: &p, half }.top_k(k).expect("a clean run");
                for (q, ranking) in rankings.iter().enumerate() {
                    for place in 0..k {
                        let (id, score) = ranking.get(place).map_or((-1, f64::NEG_INFINITY), |x| *x);
                        let got = (ids[q * k + place], f64::from(scores[q * k + place]));
                        assert_eq!(got, (id, score), "{shape:?} k {k} query {q} place {place} {:?}", cx.isa);
                    }
                }
            }
        }
    }
}

#[test]
fn target_scores_are_dot_products() {
    for shape in SHAPES.into_iter().filter(|shape| shape[1] > 0) {
        let p = problem(shape);
        let targets: Vec<i32> = (0..shape[0]).map(|q| (q * 37 % (shape[1] + 1)) as i32 - 1).collect();
        let want: Vec<f32> = (0..shape[0])
            .map(|q| usize::try_from(targets[q]).map_or(0.0, |item| p.score(q, item) as f32))
            .collect();
        for (cx, half) in contexts().iter().flatten().zip([false, true].into_iter().cycle()) {
            let got = Run { cx, p: &p, half }.scores(&targets).expect("a clean run");
            assert_eq!(got, want, "{shape:?} {:?}", cx.isa);
        }
    }
}

#[test]
fn ranks_agree_with_the_place_in_the_top_k_for_scores_that_round() {
    let [q, v, d] = [50, 3000, 50];
    let p = Problem {
        shape: [q, v, d],
        queries: crate::testing::numbers(1, q * d),
        table: crate::testing::numbers(2, v * d),
        excluded: vec![vec![]; q],
    };
    for cx in contexts().iter().flatten() {
        let run = Run::new(cx, &p);
        let (ids, _) = run.top_k(20).expect("a clean run");
        for place in [0, 7, 19] {
            let targets: Vec<i32> = (0..q).map(|q| ids[q * 20 + place]).collect();
            assert_eq!(run.ranks(&targets).expect("a clean run"), vec![place as i32 + 1; q]);
        }
    }
}

#[test]
fn minus_zero_ties_with_zero() {
    // Scores 0, -0, 0, -0: the ids decide.
    let p = Problem {
        shape: [1, 4, 1],
        queries: vec![0.0],
        table: vec![1.0, -1.0, 2.0, -2.0],
        excluded: vec![vec![]],
    };
    let cx = Ctx::new(1);
    let run = Run::new(&cx, &p);
    assert_eq!(run.top_k(3).expect("a clean run").0, [0, 1, 2]);
    assert_eq!(run.ranks(&[3]).expect("a clean run"), [4]);
}

#[test]
fn bad_input_is_refused() {
    let cx = Ctx::new(2);
    let kind = |outcome: Result<Vec<i32>, crate::Fault>| outcome.map_err(|fault| (fault.kind, fault.input));
    let mut p = problem([7, 17, 9]);
    p.queries[3 * 9] = f64::NAN;
    let run = Run::new(&cx, &p);
    let refused = Err((FaultKind::NotFinite, "queries or table"));
    assert_eq!(kind(run.top_k(3).map(|out| out.0)), refused);
    assert_eq!(kind(run.ranks(&[1; 7])), refused);
    let mut p = problem([7, 17, 9]);
    p.excluded[1].push(17);
    let run = Run::new(&cx, &p);
    assert_eq!(kind(run.top_k(3).map(|out| out.0)), Err((FaultKind::Range, "excluded")));
    let p = problem([7, 17, 9]);
    let run = Run::new(&cx, &p);
    assert_eq!(kind(run.ranks(&[17; 7])), Err((FaultKind::Range, "targets")));
    assert_eq!(kind(run.ahead(&[0.0; 7], &[18; 7])), Err((FaultKind::Range, "places")));
    let (queries, table) = ([0.0; 4], [0.0; 6]);
    let outcome: Outcome = run.with(|_, _, _| {
        let (mut ids, mut scores) = ([0; 2], [0.0; 2]);
        let (ids, scores) = (MatMut::new(&mut ids, 2, 1), MatMut::new(&mut scores, 2, 1));
        let (queries, table) = (Mat::new(&queries, 2, 2), Rows::F32(Mat::new(&table, 2, 3)));
        top_k(
            &cx,
            TopK {
                queries,
                table,
                excluded: None,
                ids,
                scores,
            },
        )
    });
    assert_eq!(outcome.map_err(|fault| fault.input), Err("table"));
}
