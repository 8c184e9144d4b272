//! The score of one item for each query, the same bits as a scan of the whole table gives it.

use super::scan::Scan;
use crate::ctx::Ctx;
use crate::fault::{Outcome, check_ids};
use crate::mat::{Disjoint, Mat};
use crate::rows::Rows;
use crate::shape::check_len;

const OP: &str = "target_scores";

pub struct TargetScores<'a> {
    pub queries: Mat, // [Q, D]
    pub table: Rows,  // [V, D]
    /// -1: no item, with a score of 0.
    pub targets: &'a [i32], // [Q]
    pub scores: &'a mut [f32], // [Q]
}

pub fn target_scores(cx: &Ctx, args: TargetScores) -> Outcome {
    let scan = Scan::new(OP, args.queries, args.table, 1)?;
    let (queries, items) = (args.queries.rows, args.table.rows());
    check_len(OP, "targets", args.targets.len(), queries)?;
    check_len(OP, "scores", args.scores.len(), queries)?;
    check_ids(OP, "targets", args.targets, items, true)?;
    if items > 0 {
        scan.pairs(cx, args.targets, &Disjoint::new(args.scores));
    }
    for (score, &target) in args.scores.iter_mut().zip(args.targets) {
        if target < 0 {
            *score = 0.0;
        }
    }
    Ok(())
}
