//! Draws negatives from counter-based random numbers: draw (t, r) is a pure function of the key and its position.
//!
//! T tokens, R negatives per token, V items. Collisions with the positive are not avoided here; the losses mask them.

use crate::ctx::Ctx;
use crate::fault::{FaultKind, Outcome, check_ids, fault};
use crate::mat::MatMut;
use crate::rng::{Key, below, uniform, words};

const OP: &str = "draw_negatives";
/// Tokens of one task; a multiple of 4, as `words` wants.
const TILE: usize = 64;
/// Random words made at a time.
const WORDS: usize = 256;
/// Draws per row of a pool before the rest is taken in the order of ids.
const MOST_DRAWS: usize = 32;

/// Where negatives come from, always with replacement.
#[derive(Clone, Copy)]
pub enum Sampler<'a> {
    /// Ids `first..first + count`, uniformly.
    Uniform { first: i32, count: u32 },
    /// Id i with the probability of its weight, see [`alias_table`].
    Popularity { threshold: &'a [f32], alias: &'a [i32] },
    /// The positives of the batch's trained tokens.
    InBatch { positives: &'a [i32] },
}

/// Overwrites `ids[T, R]`; -1 everywhere when there is nothing to draw from in the batch.
pub fn draw_negatives(cx: &Ctx, key: Key, sampler: Sampler, ids: MatMut<i32>) -> Outcome {
    check(&sampler, OP)?;
    match sampler {
        Sampler::Uniform { first, count } => draw(cx, key, ids, |[word]| first + below(word, count) as i32),
        Sampler::Popularity { threshold, alias } => {
            draw(cx, key, ids, |[place, chance]| {
                alias_draw(threshold, alias, place, chance)
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

fn check(sampler: &Sampler, op: &'static str) -> Outcome {
    match *sampler {
        Sampler::Uniform { first, count }
            if first < 0 || count == 0 || i64::from(first) + i64::from(count) > i64::from(i32::MAX) =>
        {
            let got = format!("first {first}, count {count}");
            Err(fault(
                FaultKind::Argument,
                op,
                "sampler",
                "a non-empty range of ids",
                got,
            ))
        }
        Sampler::Popularity { threshold, alias } if threshold.len() != alias.len() || alias.is_empty() => {
            let got = format!("{} thresholds, {} aliases", threshold.len(), alias.len());
            Err(fault(
                FaultKind::Shape,
                op,
                "sampler",
                "one threshold and one alias per item",
                got,
            ))
        }
        Sampler::Popularity { alias, .. } => check_ids(op, "alias", alias, alias.len(), false),
        _ => Ok(()),
    }
}

/// Draw (t, r) uses words `[i W, (i + 1) W)` of the stream, i = t R + r.
fn draw<const W: usize>(cx: &Ctx, key: Key, ids: MatMut<i32>, id: impl Fn([u32; W]) -> i32 + Sync) {
    cx.pool.run(ids.rows.div_ceil(TILE), |task, _| {
        let (mut t, mut r) = (task * TILE, 0);
        let end = ids.rows.min(t + TILE);
        let (first, count) = (t * ids.cols, (end - t) * ids.cols);
        let mut buffer = [0; WORDS];
        for from in (0..count).step_by(WORDS / W) {
            let buffer = &mut buffer[..W * (WORDS / W).min(count - from)];
            // SAFETY: `cx.isa` is this CPU's.
            unsafe { words(cx.isa, key, ((first + from) * W) as u64, buffer) };
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

/// Overwrites `ids[P]` with different ids from the sampler, ascending, padded with -1.
pub fn draw_pool(cx: &Ctx, key: Key, sampler: Sampler, ids: &mut [i32]) -> Outcome {
    check(&sampler, "draw_pool")?;
    let from = match sampler {
        Sampler::Uniform { first, count } => first as usize + count as usize,
        Sampler::Popularity { alias, .. } => alias.len(),
        Sampler::InBatch { positives } => positives.iter().max().map_or(0, |&most| (most + 1).max(0) as usize),
    };
    let mut set = cx.scratch::<u64>(from.div_ceil(64));
    set.fill(0);
    let mut pool = cx.scratch::<i32>(from_batch(&sampler).len());
    let mut different = 0;
    for &id in from_batch(&sampler).iter().filter(|id| **id >= 0) {
        pool[different] = id;
        different += add(&mut set, id);
    }
    let pool = &pool[..different];
    let available = match sampler {
        Sampler::Uniform { count, .. } => count as usize,
        Sampler::Popularity { alias, .. } => alias.len(),
        Sampler::InBatch { .. } => different,
    };
    let (wanted, mut drawn) = (ids.len().min(available), 0);
    set.fill(0);
    let draw = |place: u32, chance: u32| match sampler {
        Sampler::Uniform { first, count } => first + below(place, count) as i32,
        Sampler::Popularity { threshold, alias } => alias_draw(threshold, alias, place, chance),
        Sampler::InBatch { .. } => pool[below(place, different as u32) as usize],
    };
    let mut buffer = [0; WORDS];
    for round in 0..(wanted * MOST_DRAWS).div_ceil(WORDS / 2) {
        if drawn == wanted {
            break;
        }
        // SAFETY: `cx.isa` is this CPU's.
        unsafe { words(cx.isa, key, (round * WORDS) as u64, &mut buffer) };
        for pair in buffer.as_chunks::<2>().0 {
            if drawn < wanted {
                drawn += add(&mut set, draw(pair[0], pair[1]));
            }
        }
    }
    // The pool is nearly the whole catalogue: the rest is taken in the order of ids.
    let rest: &mut dyn Iterator<Item = i32> = match sampler {
        Sampler::Uniform { first, count } => &mut (first..first + count as i32),
        Sampler::Popularity { alias, .. } => &mut (0..alias.len() as i32),
        Sampler::InBatch { .. } => &mut pool.iter().copied(),
    };
    for id in rest {
        if drawn == wanted {
            break;
        }
        drawn += add(&mut set, id);
    }
    let mut place = 0;
    for (at, &word) in set.iter().enumerate() {
        let mut left = word;
        while left != 0 {
            ids[place] = (at * 64) as i32 + left.trailing_zeros() as i32;
            place += 1;
            left &= left - 1;
        }
    }
    ids[place..].fill(-1);
    Ok(())
}

/// 1 if the id was not in the set.
fn add(set: &mut [u64], id: i32) -> usize {
    let (word, bit) = (id as usize / 64, 1 << (id as usize % 64));
    let new = set[word] & bit == 0;
    set[word] |= bit;
    usize::from(new)
}

fn from_batch<'a>(sampler: &Sampler<'a>) -> &'a [i32] {
    match *sampler {
        Sampler::InBatch { positives } => positives,
        _ => &[],
    }
}

#[inline(always)]
fn alias_draw(threshold: &[f32], alias: &[i32], place: u32, chance: u32) -> i32 {
    let slot = below(place, alias.len() as u32) as usize;
    if uniform(chance) < threshold[slot] {
        slot as i32
    } else {
        alias[slot]
    }
}

/// Outputs of [`alias_table`], one entry per item.
pub struct Alias<'a> {
    pub threshold: &'a mut [f32],
    pub alias: &'a mut [i32],
    /// Log of the probability of being drawn, for the losses' logQ correction; `-inf` where the weight is 0.
    pub logq: &'a mut [f32],
}

/// Vose's alias method: a draw costs one table look-up for any number of items.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(sampler: Sampler, size: usize) -> Vec<i32> {
        let mut ids = vec![7; size];
        draw_pool(&Ctx::new(2), Key::new(1, 2, 3), sampler, &mut ids).expect("a pool");
        ids
    }

    #[test]
    fn a_pool_holds_different_ids_in_order() {
        for (count, size) in [(1000, 100), (1000, 990), (64, 64), (5, 1)] {
            let ids = pool(Sampler::Uniform { first: 10, count }, size);
            assert!(ids.is_sorted_by(|a, b| a < b), "{size} of {count}");
            assert!(ids.iter().all(|id| (10..10 + count as i32).contains(id)));
        }
        assert_eq!(pool(Sampler::Uniform { first: 2, count: 3 }, 5), [2, 3, 4, -1, -1]);
        let positives = [9, 4, -1, 9, 4, 6];
        assert_eq!(pool(Sampler::InBatch { positives: &positives }, 4), [4, 6, 9, -1]);
        assert_eq!(pool(Sampler::InBatch { positives: &[-1, -1] }, 2), [-1, -1]);
    }

    #[test]
    fn a_uniform_pool_takes_every_id_equally_often() {
        let mut met = [0; 40];
        for step in 0..2000 {
            let mut ids = [0; 10];
            let sampler = Sampler::Uniform { first: 0, count: 40 };
            draw_pool(&Ctx::new(1), Key::new(1, step, 0), sampler, &mut ids).expect("a pool");
            ids.iter().for_each(|&id| met[id as usize] += 1);
        }
        // 500 each; the standard deviation is 19.
        assert!(met.iter().all(|count| (400..600).contains(count)), "{met:?}");
    }

    #[test]
    fn a_popular_item_is_in_the_pool_and_a_rare_one_seldom() {
        let weights: Vec<f32> = (0..100).map(|i| if i < 5 { 100.0 } else { 0.1 }).collect();
        let (mut threshold, mut alias, mut logq) = (vec![0.0; 100], vec![0; 100], vec![0.0; 100]);
        let to = Alias {
            threshold: &mut threshold,
            alias: &mut alias,
            logq: &mut logq,
        };
        alias_table(&Ctx::new(1), &weights, to).expect("a table");
        let sampler = Sampler::Popularity {
            threshold: &threshold,
            alias: &alias,
        };
        assert!((0..5).all(|id| pool(sampler, 6).contains(&id)));
        assert_eq!(pool(sampler, 100), (0..100).collect::<Vec<_>>(), "all there are");
    }
}
