//! Which way the rows of a gradient are summed: by sorting, or in parts. Decided by sizes alone.

use super::apply::Job;
use super::{parts, runs};
use crate::ctx::Ctx;
use crate::exact_sum::ExactSum;

/// Sums every touched row and hands it to the job's rule. Returns the sum of squares, if the rule forms it.
pub(super) fn form(cx: &Ctx, job: &Job) -> ExactSum {
    let entries = job.contributions.iter().map(|c| c.ids.rows * c.ids.cols).sum();
    match parts::parts(job.read.vocabulary, job.read.rows.cols(), entries) {
        Some(parts) => parts::form(cx, job, parts),
        None => runs::form(cx, job),
    }
}

/// The sum over tiles.
pub(super) fn total(tiles: &[ExactSum]) -> ExactSum {
    let mut total = ExactSum::ZERO;
    tiles.iter().for_each(|tile| total.merge(tile));
    total.carry();
    total
}

/// Turns counts into the number of the first of each tile; returns the total.
pub(super) fn number(counts: &mut [u32]) -> usize {
    let mut total = 0;
    for count in counts {
        total += std::mem::replace(count, total);
    }
    total as usize
}
