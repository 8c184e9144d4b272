//! Counts and sums of a whole table, and that those of its parts add up to them.

use super::super::naive::Problem;
use super::{Run, SHAPES, problem};
use crate::Ctx;
use crate::testing::contexts;

/// Rows `index, index + count, ...` of the table, which is how ranks divide one.
fn part(p: &Problem, index: usize, count: usize) -> Problem {
    let [q, v, d] = p.shape;
    let rows: Vec<usize> = (index..v).step_by(count).collect();
    let own = |id: &&i32| **id >= 0 && **id as usize % count == index;
    Problem {
        shape: [q, rows.len(), d],
        queries: p.queries.clone(),
        table: rows
            .iter()
            .flat_map(|row| p.table[row * d..(row + 1) * d].iter().copied())
            .collect(),
        excluded: p
            .excluded
            .iter()
            .map(|list| list.iter().filter(own).map(|id| id / count as i32).collect())
            .collect(),
    }
}

#[test]
fn count_ahead_equals_a_full_sort_and_parts_add_up() {
    let contexts = contexts();
    for shape in SHAPES.into_iter().filter(|shape| shape[1] > 0) {
        let p = problem(shape);
        let targets: Vec<i32> = (0..shape[0]).map(|q| (q * 37 % shape[1]) as i32).collect();
        // The target's own score, others that are met by ties, and ones that are not.
        let bars: Vec<f32> = (0..shape[0])
            .map(|q| p.score(q, targets[q] as usize) as f32 + [0.0, 3.0, -3.0, 0.5, -100.0][q % 5])
            .collect();
        let want: Vec<i32> = (0..shape[0])
            .map(|q| {
                let (bar, target) = (f64::from(bars[q]), targets[q]);
                let beats = |&&(id, score): &&(i32, f64)| score > bar || (score == bar && id < target);
                p.ranking(q).iter().filter(beats).count() as i32
            })
            .collect();
        for (cx, half) in contexts.iter().flatten().zip([false, true].into_iter().cycle()) {
            let got = Run { cx, p: &p, half }.ahead(&bars, &targets).expect("a clean run");
            assert_eq!(got, want, "{shape:?} {:?}", cx.isa);
            for count in [2, 3] {
                let mut sum = vec![0; shape[0]];
                for index in 0..count {
                    // Rows of the part that come before the target in the whole table.
                    let before = |target: &i32| (*target as usize).saturating_sub(index).div_ceil(count) as i32;
                    let places: Vec<i32> = targets.iter().map(before).collect();
                    let p = part(&p, index, count);
                    let run = Run { cx, p: &p, half };
                    let counts = run.ahead(&bars, &places).expect("a clean run");
                    sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
                }
                assert_eq!(sum, want, "{shape:?} in {count} parts {:?}", cx.isa);
            }
        }
    }
}

#[test]
fn exp_sum_is_the_softmax_s_denominator_and_parts_add_up() {
    const BITS: usize = 40;
    let contexts = contexts();
    for shape in SHAPES.into_iter().filter(|shape| shape[1] > 0) {
        let mut p = problem(shape);
        p.queries.iter_mut().for_each(|x| *x /= 8.0);
        let best = |q: usize| (0..shape[1]).map(|item| p.score(q, item)).fold(f64::MIN, f64::max);
        let bars: Vec<f32> = (0..shape[0]).map(|q| best(q) as f32).collect();
        for cx in contexts.iter().flatten() {
            let run = Run::new(cx, &p);
            let got = run.exp_sums(&bars, BITS).expect("a clean run");
            for (q, sum) in got.iter().enumerate() {
                let bar = f64::from(bars[q]);
                let want: f64 = (0..shape[1]).map(|item| (p.score(q, item) - bar).exp()).sum();
                let sum = *sum as f64 / (1u64 << BITS) as f64;
                assert!((sum - want).abs() < 1e-6 * want, "{shape:?} {sum} {want}");
            }
            for count in [2, 3] {
                let mut sum = vec![0; shape[0]];
                for index in 0..count {
                    let p = part(&p, index, count);
                    let run = Run::new(cx, &p);
                    let parts = run.exp_sums(&bars, BITS).expect("a clean run");
                    sum.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
                }
                assert_eq!(sum, got, "{shape:?} in {count} parts {:?}", cx.isa);
            }
        }
    }
    let p = problem([2, 4097, 7]);
    let crowded = Run::new(&Ctx::new(1), &p).exp_sums(&[0.0; 2], 50);
    assert_eq!(crowded.map_err(|fault| fault.input), Err("bits"));
}
