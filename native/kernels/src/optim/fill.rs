//! Initial values. Element `i` is a pure function of the key and `i`, so a table can be filled in any number of pieces.

use super::TILE;
use crate::ctx::Ctx;
use crate::fault::{FaultKind, Outcome, fault};
use crate::mat::Disjoint;
use crate::rng::{Key, philox_raw, uniform, word};
use crate::rows::{Element, RowsMut};
use crate::with_rows;

pub fn fill_constant(cx: &Ctx, value: f32, to: &mut [f32]) -> Outcome {
    fill(cx, to, |_| value);
    Ok(())
}

/// Uniform in [low, high).
pub fn fill_uniform(cx: &Ctx, key: Key, low: f32, high: f32, to: &mut [f32]) -> Outcome {
    ordered("fill_uniform", low, high)?;
    fill(cx, to, |i| low + (high - low) * uniform(word(key, i)));
    Ok(())
}

pub fn fill_normal(cx: &Ctx, key: Key, mean: f32, std: f32, to: &mut [f32]) -> Outcome {
    fill_fours(cx, to, |four| normals(key, four, 0).map(|x| mean + std * x));
    Ok(())
}

/// A normal distribution truncated to [low, high] (absolute bounds, like PyTorch's `trunc_normal_`) by redrawing.
pub struct TruncNormal {
    pub mean: f32,
    pub std: f32,
    pub low: f32,
    pub high: f32,
}

/// Which rows of a larger matrix are filled: row `r` is the matrix's row `first + r * step`.
#[derive(Clone, Copy)]
pub struct EveryRow {
    pub first: usize,
    pub step: usize,
}

/// 16-bit storage is rounded to nearest. The bounds must leave a tenth of a standard deviation on both sides of the mean, so
/// that redrawing terminates quickly.
pub fn fill_trunc_normal(cx: &Ctx, key: Key, shape: TruncNormal, rows: EveryRow, to: RowsMut) -> Outcome {
    let TruncNormal { mean, std, low, high } = shape;
    let op = "fill_trunc_normal";
    ordered(op, low, high)?;
    if !(mean - low >= 0.1 * std && high - mean >= 0.1 * std) {
        let expected = format!("at least 0.1 std around the mean {mean} (std {std})");
        return Err(fault(
            FaultKind::Argument,
            op,
            "low, high",
            expected,
            format!("{low}..{high}"),
        ));
    }
    let values = |four| {
        let mut x = normals(key, four, 0).map(|x| mean + std * x);
        for (lane, x) in x.iter_mut().enumerate() {
            let mut attempt = 0;
            while !(low..=high).contains(x) {
                attempt += 1;
                *x = mean + std * normals(key, four, attempt)[lane];
            }
        }
        x
    };
    with_rows!(RowsMut, to, to => {
        let per_task = (TILE / to.cols.max(1)).max(1);
        cx.pool.run(to.rows.div_ceil(per_task), |task, _| {
            for row in task * per_task..to.rows.min((task + 1) * per_task) {
                let first = ((rows.first + row * rows.step) * to.cols) as u64;
                // SAFETY: tasks own disjoint rows.
                fill_from(first, unsafe { to.row(row) }, values);
            }
        });
    });
    Ok(())
}

fn ordered(op: &'static str, low: f32, high: f32) -> Outcome {
    if low <= high && (high - low).is_finite() {
        return Ok(());
    }
    Err(fault(
        FaultKind::Argument,
        op,
        "low, high",
        "finite bounds in ascending order",
        format!("{low}..{high}"),
    ))
}

/// Four standard normal numbers (Box-Muller), different for each `attempt`.
fn normals(key: Key, four: u64, attempt: u32) -> [f32; 4] {
    let words = philox_raw([four as u32, (four >> 32) as u32, attempt, 1], [key.0, key.1]);
    let pair = |a: u32, b: u32| {
        let radius = (-2.0 * (1.0 - uniform(a)).ln()).sqrt();
        let (sin, cos) = (std::f32::consts::TAU * uniform(b)).sin_cos();
        [radius * cos, radius * sin]
    };
    let ([a, b], [c, d]) = (pair(words[0], words[1]), pair(words[2], words[3]));
    [a, b, c, d]
}

fn fill(cx: &Ctx, to: &mut [f32], value: impl Fn(u64) -> f32 + Sync) {
    fill_fours(cx, to, |four| [0, 1, 2, 3].map(|lane| value(4 * four + lane)));
}

/// Fills `to` with the elements from number `first` on.
fn fill_from<E: Element>(first: u64, to: &mut [E], values: impl Fn(u64) -> [f32; 4]) {
    let mut at = 0;
    while at < to.len() {
        let number = first + at as u64;
        let lane = (number % 4) as usize;
        let count = (4 - lane).min(to.len() - at);
        let values = values(number / 4);
        for (to, x) in to[at..at + count].iter_mut().zip(&values[lane..]) {
            *to = E::narrow(*x);
        }
        at += count;
    }
}

/// Elements `4 i..4 i + 4` are `values(i)`.
fn fill_fours<E: Element>(cx: &Ctx, to: &mut [E], values: impl Fn(u64) -> [f32; 4] + Sync) {
    let len = to.len();
    let to = Disjoint::new(to);
    cx.pool.run(len.div_ceil(TILE), |task, _| {
        let from = task * TILE;
        // SAFETY: tasks own disjoint ranges.
        let tile = unsafe { to.range(from, TILE.min(len - from)) };
        for (i, four) in tile.chunks_mut(4).enumerate() {
            let values = values((from / 4 + i) as u64);
            four.iter_mut().zip(values).for_each(|(to, x)| *to = E::narrow(x));
        }
    });
}
