//! Softmax over the whole catalogue. Small catalogues keep a block of probabilities (`blocks`); large ones are streamed
//! in rounds of items with a running log-sum-exp (`streamed`), in memory independent of their size. The choice depends
//! only on the number of items.
//!
//! T tokens, D width, V items.

mod blocks;
mod streamed;

use super::Logit;
use crate::ctx::Ctx;
use crate::fault::{FaultKind, Outcome, check_ids, fault};
use crate::mat::{Grad, Mat};
use crate::rows::Rows;
use crate::shape::{check_len, check_mut, check_table};
use crate::simd::{LANES, Simd};

const OP: &str = "full_softmax";
/// The largest catalogue that `blocks` computes: it stores V x D and 192 x V floats.
pub const STORED_ITEMS: usize = 32_768;
/// Numbers summed in f32 before they are added in f64.
const RUN: usize = 64 * LANES;

pub struct FullSoftmax<'a> {
    pub u: Mat,               // [T, D]
    pub table: Rows,          // [V, D]
    pub positives: &'a [i32], // [T], -1: this token is not trained
    pub logit: Logit,
    /// Label smoothing: the share of the target distribution that all items have in equal parts.
    pub smoothing: f32,
    /// Divisor of the summed loss; `None`: the number of trained tokens.
    pub mean_over: Option<f32>,
    /// Output: the mean loss.
    pub loss: &'a mut f32,
    pub du: Grad,     // [T, D]
    pub dtable: Grad, // [V, D]
}

pub fn full_softmax(cx: &Ctx, args: FullSoftmax) -> Outcome {
    check(&args)?;
    let trained = args.positives.iter().filter(|&&id| id >= 0).count();
    let divisor = args.mean_over.unwrap_or(trained.max(1) as f32);
    let mut losses = cx.scratch::<f64>(args.u.rows);
    if args.table.rows() <= STORED_ITEMS {
        blocks::solve(cx, &args, divisor, &mut losses);
    } else {
        streamed::solve(cx, &args, divisor, &mut losses);
    }
    let sum: f64 = losses.iter().sum();
    *args.loss = (sum / f64::from(divisor)) as f32;
    if !args.loss.is_finite() {
        let token = losses.iter().position(|loss| !loss.is_finite());
        let got = token.map_or(format!("{sum}"), |t| format!("{} at token {t}", losses[t]));
        return Err(fault(
            FaultKind::NotFinite,
            OP,
            "u or table",
            "finite logits and loss",
            got,
        ));
    }
    Ok(())
}

fn check(args: &FullSoftmax) -> Outcome {
    let (tokens, width, items) = (args.u.rows, args.u.cols, args.table.rows());
    check_table(OP, "table", args.table, width)?;
    check_len(OP, "positives", args.positives.len(), tokens)?;
    check_mut(OP, "du", args.du.to, tokens, width)?;
    check_mut(OP, "dtable", args.dtable.to, items, width)?;
    args.logit.check(OP)?;
    if !(0.0..1.0).contains(&args.smoothing) {
        let got = format!("{}", args.smoothing);
        return Err(fault(FaultKind::Argument, OP, "smoothing", "a share below 1", got));
    }
    args.mean_over
        .map_or(Ok(()), |n| super::check_positive(OP, "mean_over", n))?;
    check_ids(OP, "positives", args.positives, items, true)
}

/// The target distribution of a token: its positive, and a share for all items alike.
#[derive(Clone, Copy)]
struct Smoothing {
    /// Of all items together.
    share: f32,
    /// Of each item.
    each: f32,
}

impl Smoothing {
    fn new(share: f32, items: usize) -> Smoothing {
        let each = share / items.max(1) as f32;
        Smoothing { share, each }
    }

    /// What the loss of a token gains: `share * (own - mean)` of its logits, from the sum of the row.
    fn gain(self, own: f64, sum: f64) -> f64 {
        f64::from(self.share) * own - f64::from(self.each) * sum
    }

    /// The positive's part of the target distribution that smoothing takes away.
    fn lost(self) -> f64 {
        f64::from(self.share) - f64::from(self.each)
    }
}

/// # Safety
/// This CPU has `V`'s instructions; `x` is valid for `n` floats.
#[inline(always)]
unsafe fn row_sum<V: Simd>(x: *const f32, n: usize) -> f64 {
    let mut total = 0.0;
    for from in (0..n).step_by(RUN) {
        // SAFETY: the vectors are within the row.
        unsafe {
            let mut sum = V::zero();
            for k in (from..n.min(from + RUN)).step_by(LANES) {
                sum = sum.add(V::load_upto(x.add(k), n - k));
            }
            total += f64::from(sum.sum());
        }
    }
    total
}
