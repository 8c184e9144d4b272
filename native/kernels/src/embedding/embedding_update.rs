//! Sums a table's gradient and applies it in one op: each touched row's gradient is summed in a fixed order and passed to the
//! optimiser at once (`embedding_update`). For large tables (`runs`) the summands are sorted by row and no gradient is stored
//! unless requested (`Dense`); small tables with many draws (`parts`) are summed without sorting. `embedding_apply` applies
//! gradient rows that are already summed.
//!
//! V items, D width. Untouched rows are not read; lazy Adam and row-wise AdaGrad do not change them.

use super::apply::{Job, Rule};
use super::contribution::{Contribution, ReadRows, check_ascending, check_contributions};
use super::{direct, sums};
use crate::ctx::Ctx;
use crate::exact_sum::ExactSum;
use crate::fault::{FaultKind, Outcome, fault};
use crate::mat::{Disjoint, Grad, Mat, MatMut};
use crate::optim::{Adam, AdamFactors};
use crate::rng::Key;
use crate::rows::RowsMut;
use crate::shape::{check_len, check_mat, check_mut};

/// Rows zeroed by one task.
const ZERO_TILE: usize = 1024;

/// What to do with a touched row's gradient.
pub enum Update<'a> {
    /// Written to `grad[V, D]` for a dense optimiser; rows not touched are zero (or left, when accumulating).
    Dense { grad: Grad },
    /// Added to the square of the global norm; nothing is updated.
    SquareSum { to: &'a mut ExactSum },
    /// Adam on touched rows only, bias-corrected by the global step.
    LazyAdam { m: MatMut, v: MatMut, hyper: Adam },
    /// One accumulator per row: `state += mean g^2; row -= lr g / (sqrt(state) + eps)`.
    RowAdagrad {
        state: &'a mut [f32],
        lr: f32,
        eps: f32,
        weight_decay: f32,
    },
}

pub struct EmbeddingUpdate<'a> {
    pub table: RowsMut, // [V, D]
    /// The rows that the contributions index, if staged; default: the table's.
    pub staged: Option<ReadRows<'a>>,
    pub contributions: &'a [Contribution],
    pub update: Update<'a>,
    /// Random numbers for stochastic rounding of 16-bit rows; default: round to nearest.
    pub rounding: Option<Key>,
    /// Multiplies the gradient; not used by `Dense` and `SquareSum`, whose readers apply it.
    pub grad_scale: Option<&'a f32>,
}

pub fn embedding_update(cx: &Ctx, args: EmbeddingUpdate) -> Outcome {
    let op = "embedding_update";
    let table = args.table.as_ref();
    let read = args.staged.unwrap_or(ReadRows {
        rows: table,
        ids: None,
        vocabulary: table.rows(),
    });
    if (read.vocabulary, read.rows.cols()) != (table.rows(), table.cols()) {
        let expected = format!("rows of the table, [{}, {}]", table.rows(), table.cols());
        let got = format!("rows of [{}, {}]", read.vocabulary, read.rows.cols());
        return Err(fault(FaultKind::Shape, op, "staged", expected, got));
    }
    let eps = check_contributions(op, &read, args.contributions)?;
    let last = Last {
        table: args.table,
        update: args.update,
        rounding: args.rounding,
        grad_scale: args.grad_scale,
    };
    finish(op, cx, last, |rule| {
        let contributions = args.contributions;
        sums::form(
            cx,
            &Job {
                read,
                contributions,
                rule,
                eps,
            },
        )
    })
}

pub struct EmbeddingApply<'a> {
    pub table: RowsMut, // [V, D]
    /// The table's row that each gradient row belongs to, ascending, padded with -1; absent: all rows in order.
    pub ids: Option<&'a [i32]>, // [U]
    pub rows: Mat,      // [U, D]
    pub update: Update<'a>,
    /// As in [`EmbeddingUpdate`].
    pub rounding: Option<Key>,
    pub grad_scale: Option<&'a f32>,
}

pub fn embedding_apply(cx: &Ctx, args: EmbeddingApply) -> Outcome {
    let op = "embedding_apply";
    let table = args.table.as_ref();
    check_mat(
        op,
        "rows",
        args.rows,
        args.ids.map_or(table.rows(), <[i32]>::len),
        table.cols(),
    )?;
    let count = match args.ids {
        Some(ids) => check_ascending(op, "ids", ids, table.rows())?,
        None => table.rows(),
    };
    let last = Last {
        table: args.table,
        update: args.update,
        rounding: args.rounding,
        grad_scale: args.grad_scale,
    };
    finish(op, cx, last, |rule| direct::apply(cx, rule, args.rows, args.ids, count))
}

/// What to do with the sums.
struct Last<'a> {
    table: RowsMut,
    update: Update<'a>,
    rounding: Option<Key>,
    grad_scale: Option<&'a f32>,
}

/// Converts an update to its rule, runs `each` with it, and stores the returned square sum.
fn finish(op: &'static str, cx: &Ctx, last: Last, each: impl FnOnce(&Rule) -> ExactSum) -> Outcome {
    let Last {
        table,
        update,
        rounding,
        grad_scale,
    } = last;
    check_update(op, table, &update)?;
    let mut sum = None;
    let rule = match update {
        Update::Dense { grad } => {
            if !grad.accumulate {
                zero(cx, grad.to);
            }
            Rule::Dense(grad.to)
        }
        Update::SquareSum { to } => {
            sum = Some(to);
            Rule::SquareSum
        }
        Update::LazyAdam { m, v, hyper } => Rule::LazyAdam {
            table,
            m,
            v,
            factors: AdamFactors::new(&hyper, grad_scale),
            rounding,
        },
        Update::RowAdagrad {
            state,
            lr,
            eps,
            weight_decay,
        } => Rule::RowAdagrad {
            table,
            state: Disjoint::new(state),
            lr,
            eps,
            keep: 1.0 - lr * weight_decay,
            grad_scale: grad_scale.copied().unwrap_or(1.0),
            rounding,
        },
    };
    let square = each(&rule);
    if let Some(to) = sum {
        to.merge(&square);
        to.carry();
    }
    Ok(())
}

fn zero(cx: &Ctx, to: MatMut) {
    cx.pool.run(to.rows.div_ceil(ZERO_TILE), |task, _| {
        for row in task * ZERO_TILE..to.rows.min((task + 1) * ZERO_TILE) {
            // SAFETY: tasks own disjoint rows.
            unsafe { to.row(row).fill(0.0) };
        }
    });
}

fn check_update(op: &'static str, table: RowsMut, update: &Update) -> Outcome {
    let (items, cols) = (table.as_ref().rows(), table.as_ref().cols());
    match update {
        Update::Dense { grad } => check_mut(op, "grad", grad.to, items, cols),
        Update::SquareSum { .. } => Ok(()),
        Update::LazyAdam { m, v, hyper } => {
            check_mut(op, "m", *m, items, cols)?;
            check_mut(op, "v", *v, items, cols)?;
            hyper.check(op)
        }
        Update::RowAdagrad {
            state,
            lr,
            eps,
            weight_decay,
        } => {
            check_len(op, "state", state.len(), items)?;
            if [lr, eps, weight_decay].iter().all(|x| x.is_finite()) {
                return Ok(());
            }
            let got = format!("{lr}, {eps}, {weight_decay}");
            let input = "lr, eps, weight_decay";
            Err(fault(FaultKind::Argument, op, input, "finite numbers", got))
        }
    }
}
