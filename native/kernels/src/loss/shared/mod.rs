//! Sampled losses with logit sharing: tokens form groups of k, and the draws of the whole group are negatives of each token. A
//! row is fetched once and used for k tokens while it is in L1.
//!
//! T tokens, D width, V items, G groups of k tokens, R draws per token, N = k R draws of a group.
//!
//!   outputs  logits of a token's own output against the draws of the whole group (the paper's equation 2)
//!   scalars  logits of each draw only against the output of the token that drew it; the others reuse the number. No
//!            more dot products than without sharing, but the denominator of token i then has e^(o_j . n) where
//!            e^(o_i . n) belongs: correct in the mean over tokens, not for each. Gradients are those of that loss.

mod draws;
mod group;
#[cfg(test)]
mod tests;

use super::Logit;
use super::fetched::{Fetched, Segment, check_positive_rows};
use super::history::{Mask, check_members};
use super::objective::Objective;
use super::sampled::gbce_beta;
use crate::ctx::Ctx;
use crate::embedding::MAX_MEMBERS;
use crate::fault::{FaultKind, Outcome, check_ids, fault};
use crate::mat::{Disjoint, Grad, Mat, MatMut};
use crate::rows::Rows;
use crate::shape::{check_id_mat, check_len, check_mat, check_mut, check_table, check_vec};
use crate::simd::{LANES, dispatch};
use crate::with_rows;
use group::{Group, Groups};

const OP: &str = "shared_loss";
/// Groups of one task.
const TILE: usize = 8;
/// Maximum tokens of a group.
pub const MOST: usize = MAX_MEMBERS;

/// What a group shares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Share {
    Outputs,
    Scalars,
}

/// The loss of a token, see `sampled`.
#[derive(Clone, Copy)]
pub enum SharedObjective<'a> {
    /// `logq[V]` is subtracted from the logits.
    Softmax {
        logq: Option<&'a [f32]>,
    },
    Bce,
    Gbce {
        t: f32,
    },
}

pub struct Shared<'a> {
    pub u: Mat, // [T, D]
    /// The table, or rows staged from it, which the ids then index by position.
    pub table: Rows, // [V, D]
    pub vocabulary: usize, // V
    pub positives: &'a [i32], // [T]
    pub members: Mat<i32>, // [G, k] tokens of each group, -1: none
    pub negatives: Mat<i32>, // [G, N] draws of member 0, then of member 1, ...; -1: none
    /// Rows of the negatives; default: those of the table.
    pub fetched: Option<Fetched<'a>>,
    /// With fetched rows: the positives' rows in `table`, if ids are those of the whole table.
    pub positive_rows: Option<&'a [i32]>, // [T]
    /// The groups to score; outputs of others are unchanged.
    pub segment: Segment<'a>,
    pub mask: Mask<'a>,
    pub share: Share,
    pub objective: SharedObjective<'a>,
    pub logit: Logit,
    /// Divisor of the summed loss; `None` is the number of members.
    pub mean_over: Option<f32>,
    /// Output: the mean loss.
    pub loss: &'a mut f32,
    /// Tokens that are in no group get zeros.
    pub du: Grad, // [T, D]
    /// Overwritten with d loss / d (uhat . ehat) of each draw, the group's members one after the other; 0 where masked.
    pub coef: MatMut, // [G, N k]
    /// Output: the (normalised) user vectors of the members; zeros for none.
    pub uhat: MatMut, // [G k, D]
    /// Overwritten with the members' positives, -1 for no member, and their coefficients.
    pub own: (&'a mut [i32], &'a mut [f32]), // [G k], [G k]
}

pub fn shared_loss(cx: &Ctx, args: Shared) -> Outcome {
    check(&args)?;
    let (tokens, k) = (args.u.rows, args.members.cols);
    let positions = args.segment.positions.clone();
    let groups = positions.len();
    // SAFETY: groups are rows of the view.
    let present = (0..args.members.rows).flat_map(|group| unsafe { args.members.row(group) });
    let divisor = args
        .mean_over
        .unwrap_or(present.filter(|member| **member >= 0).count().max(1) as f32);
    let draws = args.negatives.cols;
    let objective = match args.objective {
        SharedObjective::Softmax { logq } => Objective::Softmax { logq },
        SharedObjective::Bce => Objective::Bce { beta: 1.0 },
        SharedObjective::Gbce { t } => Objective::Bce {
            beta: gbce_beta(draws, args.vocabulary, f64::from(t)) as f32,
        },
    };
    if !args.du.accumulate && positions.start == 0 {
        // SAFETY: no task runs yet.
        (0..tokens).for_each(|t| unsafe { args.du.to.row(t) }.fill(0.0));
    }
    let padded = (1 + draws).next_multiple_of(LANES);
    let width = args.u.cols.next_multiple_of(LANES);
    let mut losses = cx.scratch::<f64>(groups * k);
    let (mut floats, mut ids) = (
        cx.per_worker::<f32>(k * (3 * width + 3 * padded) + 2 * padded),
        cx.per_worker::<i32>(2 * padded + args.mask.scratch()),
    );
    {
        let losses = Disjoint::new(&mut losses);
        let (floats, ids) = (floats.slots(), ids.slots());
        let (own_ids, own_coef) = args.own;
        let group = Group {
            u: args.u,
            positives: args.positives,
            positive_rows: args.positive_rows.unwrap_or(args.positives),
            first: positions.start,
            members: args.members,
            negatives: args.negatives,
            table: args.table,
            fetched: args.fetched,
            mask: args.mask,
            share: args.share,
            objective,
            logit: args.logit,
            divisor,
            du: args.du,
            coef: args.coef,
            uhat: args.uhat,
            own: (Disjoint::new(own_ids), Disjoint::new(own_coef)),
        };
        cx.pool.run(groups.div_ceil(TILE), |task, worker| {
            let (from, to) = (task * TILE, groups.min((task + 1) * TILE));
            let rows = args.fetched.map_or(args.table, |fetched| fetched.rows);
            // SAFETY: tasks own disjoint groups, and a token is in one group; each worker has its own slots.
            unsafe {
                let losses = losses.range(from * k, (to - from) * k);
                let (floats, ids) = (floats.of(worker), ids.of(worker));
                with_rows!(Rows, rows, table => dispatch(cx.isa, Groups {
                    table, group: &group, from: positions.start + from, losses, floats, ids,
                }));
            }
        });
    }
    let sum = args.segment.add(&losses);
    *args.loss = (sum / f64::from(divisor)) as f32;
    if !args.loss.is_finite() {
        return Err(fault(
            FaultKind::NotFinite,
            OP,
            "u or table",
            "finite logits and loss",
            format!("{sum}"),
        ));
    }
    Ok(())
}

fn check(args: &Shared) -> Outcome {
    let (tokens, width) = (args.u.rows, args.u.cols);
    let (groups, k, draws) = (args.members.rows, args.members.cols, args.negatives.cols);
    let ids = args.positive_rows.map_or(args.table.rows(), |_| args.vocabulary);
    if k == 0 || k > MOST || draws % k != 0 {
        let got = format!("{k} members, {draws} draws");
        let expected = format!("1 to {MOST} members and as many draws of each");
        return Err(fault(FaultKind::Argument, OP, "members", expected, got));
    }
    if let SharedObjective::Gbce { t } = args.objective
        && !(0.0..=1.0).contains(&t)
    {
        return Err(fault(FaultKind::Argument, OP, "t", "a number in 0..=1", format!("{t}")));
    }
    check_table(OP, "table", args.table, width)?;
    check_len(OP, "positives", args.positives.len(), tokens)?;
    check_members(OP, args.members, groups, tokens)?;
    check_mat(OP, "negatives", args.negatives, groups, draws)?;
    check_mut(OP, "du", args.du.to, tokens, width)?;
    check_mut(OP, "coef", args.coef, groups, draws * k)?;
    check_mut(OP, "uhat", args.uhat, groups * k, width)?;
    check_len(OP, "own ids", args.own.0.len(), groups * k)?;
    check_len(OP, "own coef", args.own.1.len(), groups * k)?;
    check_apart(args.members, tokens)?;
    args.segment.check(OP, groups)?;
    if let Some(fetched) = args.fetched {
        fetched.check(OP, width, args.negatives, &args.segment.positions)?;
    }
    args.mask.check(OP, tokens)?;
    args.logit.check(OP)?;
    if let SharedObjective::Softmax { logq } = args.objective {
        check_vec(OP, "logq", logq, ids)?;
    }
    args.mean_over
        .map_or(Ok(()), |n| super::check_positive(OP, "mean_over", n))?;
    check_ids(OP, "positives", args.positives, ids, true)?;
    check_positive_rows(OP, args.positive_rows, args.positives, (args.fetched, args.table))?;
    check_id_mat(OP, "negatives", args.negatives, ids)
}

/// No token twice: tasks write the gradients of their own tokens.
fn check_apart(members: Mat<i32>, tokens: usize) -> Outcome {
    let mut met = vec![false; tokens];
    for group in 0..members.rows {
        // SAFETY: the group is a row of the view.
        for &member in unsafe { members.row(group) }.iter().filter(|member| **member >= 0) {
            if std::mem::replace(&mut met[member as usize], true) {
                let got = format!("token {member} twice");
                return Err(fault(
                    FaultKind::Argument,
                    OP,
                    "members",
                    "each token once at most",
                    got,
                ));
            }
        }
    }
    Ok(())
}
