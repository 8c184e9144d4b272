//! Groups tokens that share their draws: a shuffle of the tokens, keyed like every other draw, split into groups.
//!
//! T tokens, R draws per token, G groups of k tokens.

use crate::ctx::Ctx;
use crate::fault::Outcome;
use crate::mat::{Mat, MatMut};
use crate::rng::{Key, below, words};
use crate::shape::{check_mat, check_mut};

/// Deals the trained tokens to groups of `members.cols`, in an order shuffled by `key`, and gathers the draws of each
/// group. The last group is filled up with draws of the first tokens in that order, which are not members of it.
pub fn share_negatives(
    cx: &Ctx,
    key: Key,
    positives: &[i32],
    drawn: Mat<i32>,
    (members, negatives): (MatMut<i32>, MatMut<i32>),
) -> Outcome {
    let op = "share_negatives";
    let (tokens, k, per) = (positives.len(), members.cols, drawn.cols);
    check_mat(op, "drawn", drawn, tokens, per)?;
    let groups = tokens.div_ceil(k.max(1));
    check_mut(op, "members", members, groups, k)?;
    check_mut(op, "negatives", negatives, groups, k * per)?;
    let mut order = cx.scratch::<i32>(tokens);
    let mut count = 0;
    for (token, _) in positives.iter().enumerate().filter(|(_, positive)| **positive >= 0) {
        order[count] = token as i32;
        count += 1;
    }
    let mut random = cx.scratch::<u32>(count);
    // SAFETY: `cx.isa` is this CPU's.
    unsafe { words(cx.isa, key, 0, &mut random) };
    for last in (1..count).rev() {
        order.swap(last, below(random[last], last as u32 + 1) as usize);
    }
    for group in 0..groups {
        // SAFETY: one thread; the rows exist.
        let (members, ids) = unsafe { (members.row(group), negatives.row(group)) };
        for (i, (member, ids)) in members.iter_mut().zip(ids.chunks_mut(per.max(1))).enumerate() {
            let at = group * k + i;
            *member = if at < count { order[at] } else { -1 };
            let donor = match at < count {
                true => Some(at),
                false => at
                    .checked_sub(count)
                    .filter(|from| group * k < count && *from < group * k),
            };
            match donor {
                // SAFETY: tokens are rows of the draws.
                Some(at) => ids.copy_from_slice(unsafe { drawn.row(order[at] as usize) }),
                None => ids.fill(-1),
            }
        }
    }
    Ok(())
}
