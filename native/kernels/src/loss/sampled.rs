//! Sampled softmax, BCE and gBCE: a positive and R sampled negatives for every token.
//!
//! T tokens, D width, R negatives per token, V items; N = trained tokens (or `mean_over`).
//!
//!   sampled softmax  -l+ + log(e^l+ + sum_r e^l_r)              with l -= logq[item] for positive and negatives alike
//!   BCE              (softplus(-l+) + sum_r softplus(l_r)) / (R + 1)
//!   gBCE             (beta softplus(-l+) + sum_r softplus(l_r)) / (R + 1)      Petrov & Macdonald, gSASRec (RecSys'23):
//!                    beta = alpha (t (1 - 1/alpha) + 1/alpha), alpha = R / (V - 1); t = 0 is BCE
//!
//! A negative that equals its token's positive, or is -1, is masked: it adds nothing and its coefficient is 0.
//! The table's gradient is not materialised here: `coef` and `uhat` are its factors, see `embedding_update`.

use super::Logit;
use super::fetched::{Fetched, Segment, check_positive_rows};
use super::objective::Objective;
use super::stage::{Beside, Expected, Stage};
use super::token::{Scorer, Tile, score_tokens};
use crate::ctx::Ctx;
use crate::fault::{FaultKind, Outcome, check_ids, fault};
use crate::mat::{Disjoint, Grad, Mat, MatMut};
use crate::rows::Rows;
use crate::shape::{check_id_mat, check_len, check_mat, check_mut, check_table, check_vec};

/// Tokens of one task.
const TILE: usize = 32;

/// Inputs and outputs of the three losses.
pub struct Sampled<'a> {
    pub u: Mat, // [T, D]
    /// The table, or rows staged from it, which the ids then index by position.
    pub table: Rows, // [V, D] or [U, D]
    /// V. Determines how rows are prepared, so that staged rows give the bits of the whole table.
    pub vocabulary: usize,
    pub positives: &'a [i32], // [T], -1: this token is not trained
    pub negatives: Mat<i32>,  // [T, R], -1: no negative here
    /// Rows of the negatives; default: those of the table.
    pub fetched: Option<Fetched<'a>>,
    /// With fetched rows: the positives' rows in `table`, if ids are those of the whole table.
    pub positive_rows: Option<&'a [i32]>, // [T]
    /// The tokens to score; outputs of others are unchanged.
    pub segment: Segment<'a>,
    pub logit: Logit,
    /// Divisor of the summed loss; `None`: the number of trained tokens.
    pub mean_over: Option<f32>,
    /// Output: the mean loss.
    pub loss: &'a mut f32,
    pub du: Grad, // [T, D]
    /// Overwritten with d loss / d (uhat . ehat), the positive's first; 0 where masked or not trained.
    pub coef: MatMut, // [T, 1 + R]
    /// Output: the (normalised) user vectors.
    pub uhat: MatMut, // [T, D]
}

impl Sampled<'_> {
    /// How many ids there are.
    fn ids(&self) -> usize {
        self.positive_rows.map_or(self.table.rows(), |_| self.vocabulary)
    }
}

/// `logq`: log of the sampling probability of each row's item, subtracted from the logits.
pub fn sampled_softmax(cx: &Ctx, args: Sampled, logq: Option<&[f32]>) -> Outcome {
    let op = "sampled_softmax";
    check_vec(op, "logq", logq, args.ids())?;
    run(cx, op, args, Objective::Softmax { logq })
}

pub fn bce(cx: &Ctx, args: Sampled) -> Outcome {
    run(cx, "bce", args, Objective::Bce { beta: 1.0 })
}

/// `t` in [0, 1] is the paper's calibration: 0 is plain BCE, 1 fully corrects the overconfidence of sampling.
pub fn gbce(cx: &Ctx, args: Sampled, t: f32) -> Outcome {
    if !(0.0..=1.0).contains(&t) {
        return Err(fault(
            FaultKind::Argument,
            "gbce",
            "t",
            "a number in 0..=1",
            format!("{t}"),
        ));
    }
    let beta = gbce_beta(args.negatives.cols, args.vocabulary, f64::from(t)) as f32;
    run(cx, "gbce", args, Objective::Bce { beta })
}

/// Exponent of the positive's probability; 1 without negatives or with a single item.
pub(super) fn gbce_beta(negatives: usize, items: usize, t: f64) -> f64 {
    if negatives == 0 || items < 2 {
        return 1.0;
    }
    let alpha = negatives as f64 / (items - 1) as f64;
    alpha * (t * (1.0 - 1.0 / alpha) + 1.0 / alpha)
}

fn run(cx: &Ctx, op: &'static str, args: Sampled, objective: Objective) -> Outcome {
    check(op, &args)?;
    let positions = args.segment.positions.clone();
    let tokens = positions.len();
    let trained = args.positives.iter().filter(|&&id| id >= 0).count();
    let divisor = args.mean_over.unwrap_or(trained.max(1) as f32);
    let expected = Expected {
        vocabulary: args.vocabulary,
        draws: trained * (1 + args.negatives.cols),
    };
    let stage = match args.fetched {
        Some(fetched) => Stage::Fetched(Beside {
            fetched,
            first: positions.start,
            table: args.table,
            positives: args.positive_rows.unwrap_or(args.positives),
        }),
        None => Stage::new(cx, args.table, args.logit, expected),
    };
    let scorer = Scorer {
        u: args.u,
        positives: args.positives,
        negatives: args.negatives,
        logit: args.logit,
        objective,
        divisor,
        du: args.du,
        coef: args.coef,
        uhat: args.uhat,
    };
    let mut losses = cx.scratch::<f64>(tokens);
    let (mut floats, mut ids) = (
        cx.per_worker::<f32>(scorer.floats()),
        cx.per_worker::<i32>(scorer.ids()),
    );
    {
        let (losses, floats, ids) = (Disjoint::new(&mut losses), floats.slots(), ids.slots());
        cx.pool.run(tokens.div_ceil(TILE), |task, worker| {
            let at = task * TILE;
            let from = positions.start + at;
            // SAFETY: tasks own disjoint tokens; each worker has its own slots while it runs a task.
            unsafe {
                let losses = losses.range(at, TILE.min(tokens - at));
                let (floats, ids) = (floats.of(worker), ids.of(worker));
                score_tokens(
                    cx.isa,
                    &stage,
                    &scorer,
                    Tile {
                        from,
                        losses,
                        floats,
                        ids,
                    },
                );
            }
        });
    }
    let sum = args.segment.add(&losses);
    *args.loss = (sum / f64::from(divisor)) as f32;
    if !args.loss.is_finite() {
        let token = losses.iter().position(|loss| !loss.is_finite());
        let got = token.map_or(format!("{sum}"), |t| {
            format!("{} at token {}", losses[t], positions.start + t)
        });
        return Err(fault(
            FaultKind::NotFinite,
            op,
            "u or table",
            "finite logits and loss",
            got,
        ));
    }
    Ok(())
}

fn check(op: &'static str, args: &Sampled) -> Outcome {
    let (tokens, width, draws) = (args.u.rows, args.u.cols, args.negatives.cols);
    check_table(op, "table", args.table, width)?;
    check_len(op, "positives", args.positives.len(), tokens)?;
    check_mat(op, "negatives", args.negatives, tokens, draws)?;
    check_mut(op, "du", args.du.to, tokens, width)?;
    check_mut(op, "coef", args.coef, tokens, 1 + draws)?;
    check_mut(op, "uhat", args.uhat, tokens, width)?;
    args.logit.check(op)?;
    args.mean_over
        .map_or(Ok(()), |n| super::check_positive(op, "mean_over", n))?;
    check_ids(op, "positives", args.positives, args.ids(), true)?;
    check_positive_rows(op, args.positive_rows, args.positives, (args.fetched, args.table))?;
    args.segment.check(op, tokens)?;
    if let Some(fetched) = args.fetched {
        fetched.check(op, width, args.negatives, &args.segment.positions)?;
    }
    check_id_mat(op, "negatives", args.negatives, args.ids())
}
