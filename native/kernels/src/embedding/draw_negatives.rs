//! Negative items, drawn by counter: draw (t, r) is a pure function of the key and its place.
//!
//! T tokens, R negatives a token, V items. Collisions with the positive are not avoided here; the losses mask them.

use crate::ctx::Ctx;
use crate::fault::{FaultKind, Outcome, check_ids, fault};
use crate::mat::MatMut;
use crate::rng::{Key, below, uniform, words};

const OP: &str = "draw_negatives";
/// Tokens of one task; a multiple of 4, as `words` wants.
const TILE: usize = 64;
/// Random words made at a time.
const WORDS: usize = 256;

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
            draw(cx, key, ids, |[word]| first + below(word, count) as i32);
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
            draw(cx, key, ids, |[place, chance]| {
                let slot = below(place, alias.len() as u32) as usize;
                if uniform(chance) < threshold[slot] {
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
                0 => draw(cx, key, ids, |[_]| -1),
                _ => draw(cx, key, ids, |[word]| pool[below(word, count as u32) as usize]),
            }
        }
    }
    Ok(())
}

/// Draw (t, r) is made of words `[i W, (i + 1) W)` of the stream, i = t R + r.
fn draw<const W: usize>(cx: &Ctx, key: Key, ids: MatMut<i32>, id: impl Fn([u32; W]) -> i32 + Sync) {
    cx.pool.run(ids.rows.div_ceil(TILE), |task, _| {
        let (mut t, mut r) = (task * TILE, 0);
        let end = ids.rows.min(t + TILE);
        let (first, count) = (t * ids.cols, (end - t) * ids.cols);
        let mut buffer = [0; WORDS];
        for from in (0..count).step_by(WORDS / W) {
            let buffer = &mut buffer[..W * (WORDS / W).min(count - from)];
            words(key, ((first + from) * W) as u64, buffer);
            for draw in buffer.as_chunks::<W>().0 {
                // SAFETY: tasks own disjoint tokens.
                unsafe { ids.row(t)[r] = id(*draw) };
                r += 1;
                if r == ids.cols {
                    (t, r) = (t + 1, 0);
                }
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
        if share[i] < 1.0 {
            order[poor] = i as i32;
            poor += 1;
        } else {
            rich -= 1;
            order[rich] = i as i32;
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
