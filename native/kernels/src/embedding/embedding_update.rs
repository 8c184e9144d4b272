//! The table's gradient and its use in one op: each touched row's gradient is summed in a fixed order and handed to the
//! optimiser at once. Large tables (`runs`) have their summands sorted by row and store no gradient unless asked for
//! (`Dense`); small ones that are drawn from often (`parts`) are summed without sorting.
//!
//! V items, D width. Untouched rows are not read; lazy Adam and row-wise AdaGrad leave them as they are.

use super::apply::{Job, Rule};
use super::sort::{MAX_CONTRIBUTIONS, MAX_SOURCE_ROWS};
use super::{parts, runs};
use crate::ctx::Ctx;
use crate::fault::{FaultKind, Outcome, fault};
use crate::mat::{Disjoint, Grad, Mat, MatMut};
use crate::optim::{Adam, AdamFactors};
use crate::rows::RowsMut;
use crate::shape::{check_id_mat, check_len, check_mat, check_mut};

const OP: &str = "embedding_update";
/// Rows zeroed by one task.
const ZERO_TILE: usize = 1024;

/// `scale * sum coef[r, j] * source[r]` over all (r, j) with `ids[r, j]` = row is the row's gradient.
#[derive(Clone, Copy)]
pub struct Contribution {
    /// -1, or a coefficient of 0, touches nothing.
    pub ids: Mat<i32>, // [rows, per]
    pub source: Mat,       // [rows, D]
    pub coef: Option<Mat>, // [rows, per], 1 when absent
    pub scale: f32,
    /// `Some(eps)`: the gradient is that of the row divided by `max(|row|, eps)`, and is taken through it after summing.
    pub normalized: Option<f32>,
}

/// What becomes of a touched row's gradient.
pub enum Update<'a> {
    /// Written to `grad[V, D]` for a dense optimiser; rows not touched are zero (or left, when accumulating).
    Dense { grad: Grad },
    /// Added to the square of the global norm; nothing is updated.
    SquareSum { to: &'a mut f32 },
    /// Adam on touched rows only, bias-corrected by the global step.
    LazyAdam { m: MatMut, v: MatMut, hyper: Adam },
    /// One accumulator a row: `state += mean g^2; row -= lr g / (sqrt(state) + eps)`.
    RowAdagrad {
        state: &'a mut [f32],
        lr: f32,
        eps: f32,
        weight_decay: f32,
    },
}

pub struct EmbeddingUpdate<'a> {
    pub table: RowsMut, // [V, D]
    pub contributions: &'a [Contribution],
    pub update: Update<'a>,
    /// Multiplies the gradient; not used by `Dense` and `SquareSum`, whose readers apply it.
    pub grad_scale: Option<&'a f32>,
}

pub fn embedding_update(cx: &Ctx, args: EmbeddingUpdate) -> Outcome {
    check(&args)?;
    let eps = args.contributions.iter().find_map(|c| c.normalized).unwrap_or(0.0);
    let mut sum = None;
    let rule = match args.update {
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
            m,
            v,
            factors: AdamFactors::new(&hyper, args.grad_scale),
        },
        Update::RowAdagrad {
            state,
            lr,
            eps,
            weight_decay,
        } => Rule::RowAdagrad {
            state: Disjoint::new(state),
            lr,
            eps,
            keep: 1.0 - lr * weight_decay,
            grad_scale: args.grad_scale.copied().unwrap_or(1.0),
        },
    };
    let table = args.table.as_ref();
    let entries = args.contributions.iter().map(|c| c.ids.rows * c.ids.cols).sum();
    let job = Job {
        table: args.table,
        contributions: args.contributions,
        rule: &rule,
        eps,
    };
    let square = match parts::parts(table.rows(), table.cols(), entries) {
        Some(parts) => parts::update(cx, &job, parts),
        None => runs::update(cx, &job),
    };
    if let Some(to) = sum {
        *to = (f64::from(*to) + square) as f32;
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

fn check(args: &EmbeddingUpdate) -> Outcome {
    let table = args.table.as_ref();
    let (items, cols) = (table.rows(), table.cols());
    let number = args.contributions.len();
    if number > MAX_CONTRIBUTIONS {
        let expected = format!("at most {MAX_CONTRIBUTIONS}");
        return Err(fault(
            FaultKind::Argument,
            OP,
            "contributions",
            expected,
            format!("{number}"),
        ));
    }
    let mut eps = None;
    for c in args.contributions {
        check_mat(OP, "source", c.source, c.ids.rows, cols)?;
        if let Some(coef) = c.coef {
            check_mat(OP, "coef", coef, c.ids.rows, c.ids.cols)?;
        }
        if c.ids.rows >= MAX_SOURCE_ROWS {
            let expected = format!("fewer than {MAX_SOURCE_ROWS} rows");
            return Err(fault(
                FaultKind::Shape,
                OP,
                "source",
                expected,
                format!("{}", c.ids.rows),
            ));
        }
        if let (Some(first), Some(this)) = (eps, c.normalized)
            && first != this
        {
            return Err(fault(
                FaultKind::Argument,
                OP,
                "normalized",
                format!("one eps, {first}"),
                format!("{this}"),
            ));
        }
        eps = eps.or(c.normalized);
        check_id_mat(OP, "ids", c.ids, items)?;
    }
    match &args.update {
        Update::Dense { grad } => check_mut(OP, "grad", grad.to, items, cols),
        Update::SquareSum { .. } => Ok(()),
        Update::LazyAdam { m, v, hyper } => {
            check_mut(OP, "m", *m, items, cols)?;
            check_mut(OP, "v", *v, items, cols)?;
            hyper.check(OP)
        }
        Update::RowAdagrad {
            state,
            lr,
            eps,
            weight_decay,
        } => {
            check_len(OP, "state", state.len(), items)?;
            if [lr, eps, weight_decay].iter().all(|x| x.is_finite()) {
                return Ok(());
            }
            let got = format!("{lr}, {eps}, {weight_decay}");
            Err(fault(
                FaultKind::Argument,
                OP,
                "lr, eps, weight_decay",
                "finite numbers",
                got,
            ))
        }
    }
}
