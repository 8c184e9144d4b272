//! Negative items, drawn by counter: draw (t, r) is a pure function of the key and its place.
//!
//! T tokens, R negatives a token, V items. Collisions with the positive are not avoided here; the losses mask them.

use crate::ctx::Ctx;
use crate::fault::{FaultKind, Outcome, check_ids, fault};
use crate::mat::MatMut;
use crate::rng::{Key, below, philox, uniform};

const OP: &str = "draw_negatives";
/// Tokens of one task.
const TILE: usize = 64;

/// Where negatives come from, always with replacement.
#[derive(Clone, Copy)]
pub enum Sampler<'a> {
    /// Ids `first..first + count`, all alike.
    Uniform { first: i32, count: u32 },
    /// Id i with the probability of its weight, see [`alias_table`].
    Popularity { threshold: &'a [f32], alias: &'a [i32] },
    /// The positives of the batch's trained tokens.
    InBatch { positives: &'a [i32] },
}

/// Overwrites `ids[T, R]`; -1 everywhere when there is nothing to draw from in the batch.
pub fn draw_negatives(cx: &Ctx, key: Key, sampler: Sampler, ids: MatMut<i32>) -> Outcome {
    match sampler {
        Sampler::Uniform { first, count } => {
            if first < 0 || count == 0 || i64::from(first) + i64::from(count) > i64::from(i32::MAX) {
                let got = format!("first {first}, count {count}");
                return Err(fault(
                    FaultKind::Argument,
                    OP,
                    "sampler",
                    "a non-empty range of ids",
                    got,
                ));
            }
            draw(cx, ids, |i| first + below(one_of(key, i), count) as i32);
        }
        Sampler::Popularity { threshold, alias } => {
            if threshold.len() != alias.len() || alias.is_empty() {
                let got = format!("{} thresholds, {} aliases", threshold.len(), alias.len());
                return Err(fault(
                    FaultKind::Shape,
                    OP,
                    "sampler",
                    "one threshold and one alias an item",
                    got,
                ));
            }
            check_ids(OP, "alias", alias, alias.len(), false)?;
            draw(cx, ids, |i| {
                let words = two_of(key, i);
                let slot = below(words[0], alias.len() as u32) as usize;
                if uniform(words[1]) < threshold[slot] {
                    slot as i32
                } else {
                    alias[slot]
                }
            });
        }
        Sampler::InBatch { positives } => {
            let mut pool = cx.scratch::<i32>(positives.len());
            let mut count = 0;
            for &id in positives.iter().filter(|&&id| id >= 0) {
                pool[count] = id;
                count += 1;
            }
            let pool = &pool[..count];
            match count {
                0 => draw(cx, ids, |_| -1),
                _ => draw(cx, ids, |i| pool[below(one_of(key, i), count as u32) as usize]),
            }
        }
    }
    Ok(())
}

fn one_of(key: Key, i: u64) -> u32 {
    philox(key, i >> 2)[(i & 3) as usize]
}

fn two_of(key: Key, i: u64) -> [u32; 2] {
    let words = philox(key, i >> 1);
    let at = 2 * (i & 1) as usize;
    [words[at], words[at + 1]]
}

fn draw(cx: &Ctx, ids: MatMut<i32>, id: impl Fn(u64) -> i32 + Sync) {
    cx.pool.run(ids.rows.div_ceil(TILE), |task, _| {
        for t in task * TILE..ids.rows.min((task + 1) * TILE) {
            // SAFETY: tasks own disjoint tokens.
            for (r, to) in unsafe { ids.row(t) }.iter_mut().enumerate() {
                *to = id((t * ids.cols + r) as u64);
            }
        }
    });
}

/// Outputs of [`alias_table`], one entry an item.
pub struct Alias<'a> {
    pub threshold: &'a mut [f32],
    pub alias: &'a mut [i32],
    /// Log of the probability of being drawn, for the losses' logQ correction; `-inf` where the weight is 0.
    pub logq: &'a mut [f32],
}

/// Vose's alias method: a draw costs one table look-up whatever the number of items.
pub fn alias_table(cx: &Ctx, weights: &[f32], to: Alias) -> Outcome {
    let op = "alias_table";
    let items = weights.len();
    if [to.threshold.len(), to.alias.len(), to.logq.len()] != [items; 3] {
        return Err(fault(
            FaultKind::Shape,
            op,
            "outputs",
            format!("{items} entries each"),
            "other lengths",
        ));
    }
    let total: f64 = weights.iter().map(|&w| f64::from(w)).sum();
    if let Some(i) = weights.iter().position(|w| !(w.is_finite() && *w >= 0.0)) {
        let got = format!("{} at index {i}", weights[i]);
        return Err(fault(
            FaultKind::Argument,
            op,
            "weights",
            "finite numbers, none negative",
            got,
        ));
    }
    if total <= 0.0 {
        return Err(fault(
            FaultKind::Argument,
            op,
            "weights",
            "a positive sum",
            format!("{total}"),
        ));
    }
    let mut share = cx.scratch::<f64>(items);
    let mut order = cx.scratch::<i32>(items);
    // Poor items (below the mean) fill `order` from the left, rich ones from the right.
    let (mut poor, mut rich) = (0, items);
    for (i, &weight) in weights.iter().enumerate() {
        share[i] = f64::from(weight) / total * items as f64;
        to.logq[i] = (f64::from(weight) / total).ln() as f32;
        let slot = if share[i] < 1.0 {
            &mut poor
        } else {
            rich -= 1;
            &mut rich
        };
        order[*slot] = i as i32;
        if share[i] < 1.0 {
            poor += 1;
        }
    }
    while poor > 0 && rich < items {
        poor -= 1;
        let (taker, giver) = (order[poor] as usize, order[rich] as usize);
        to.threshold[taker] = share[taker] as f32;
        to.alias[taker] = giver as i32;
        share[giver] -= 1.0 - share[taker];
        if share[giver] < 1.0 {
            order[poor] = giver as i32;
            poor += 1;
            rich += 1;
        }
    }
    for &i in order[..poor].iter().chain(&order[rich..]) {
        to.threshold[i as usize] = 1.0;
        to.alias[i as usize] = i;
    }
    Ok(())
}
