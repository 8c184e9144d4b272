//! Sampled losses with one pool of negatives for all tokens: logits and both gradients are matrix products.
//!
//! T tokens, D width, V items, P rows of the pool, S tokens of a block. Only S x P weights exist at a time.

use super::fetched::Fetched;
use super::history::{Events, Mask};
use super::norm::{UnitRows, unit_rows};
use super::objective::{Objective, binary, softmax};
use super::sampled::gbce_beta;
use super::shared::SharedObjective;
use super::{Logit, check_positive};
use crate::ctx::Ctx;
use crate::fault::{FaultKind, Outcome, check_ids, fault};
use crate::gathered::dot;
use crate::gemm::{Finish, Right, Shape, multiply, outer};
use crate::mat::{Disjoint, Grad, Mat, MatMut};
use crate::rows::Rows;
use crate::shape::{check_len, check_mut, check_table, check_vec};
use crate::simd::tile::NR;
use crate::simd::{LANES, Simd};
use unit_copies::{Copied, unit_copies};

#[cfg(test)]
mod tests;
mod unit_copies;

const OP: &str = "pooled_loss";
/// Weights of one block: 16 MB, or more if that leaves fewer tokens than [`LEAST`].
const BLOCK: usize = 4 << 20;
const LEAST: usize = 192;
/// The logit of a masked row: contributes nothing and is never the maximum.
const MASKED: f32 = -1e30;

pub struct Pooled<'a> {
    pub u: Mat, // [T, D]
    /// The table, or rows staged from it, which the ids then index by position.
    pub table: Rows, // [V, D] or [U, D]
    pub vocabulary: usize, // V
    pub positives: &'a [i32], // [T], -1: this token is not trained
    pub pool: &'a [i32], // [P] ascending, padded with -1
    /// The pool's rows, with positions [1, P]; default: those of the table.
    pub fetched: Option<Fetched<'a>>,
    pub mask: Mask<'a>,
    pub objective: SharedObjective<'a>,
    pub logit: Logit,
    /// Divisor of the summed loss; `None`: the number of trained tokens.
    pub mean_over: Option<f32>,
    /// Output: the mean loss.
    pub loss: &'a mut f32,
    pub du: Grad, // [T, D]
    /// Overwritten with the gradient of the pool's (normalised) rows.
    pub dpool: MatMut, // [P, D]
    /// Overwritten with d loss / d (uhat . ehat) of the positives.
    pub coef: MatMut, // [T, 1]
    /// Output: the (normalised) user vectors.
    pub uhat: MatMut, // [T, D]
}

pub fn pooled_loss(cx: &Ctx, args: Pooled) -> Outcome {
    let live = check(&args)?;
    let (tokens, cols) = (args.u.rows, args.u.cols);
    let width = cols.next_multiple_of(LANES);
    let pool = &args.pool[..live];
    let trained = args.positives.iter().filter(|&&id| id >= 0).count();
    let divisor = args.mean_over.unwrap_or(trained.max(1) as f32);
    let objective = match args.objective {
        SharedObjective::Softmax { logq } => Objective::Softmax { logq },
        SharedObjective::Bce => Objective::Bce { beta: 1.0 },
        SharedObjective::Gbce { t } => Objective::Bce {
            beta: gbce_beta(live, args.vocabulary, f64::from(t)) as f32,
        },
    };
    let users = unit_rows(cx, Rows::F32(args.u), args.logit.normalize_user, args.logit.eps);
    for t in 0..tokens {
        // SAFETY: no task runs; both have the row.
        unsafe { args.uhat.row(t).copy_from_slice(&users.view().row(t)[..cols]) };
    }
    let gather = |ids: &[i32]| unit_copies(cx, Copied::Rows(args.table, args.logit), ids);
    // Column 0 of every product is the token's own positive: a row of zeros here.
    let mut columns = cx.scratch::<i32>(1 + live);
    columns[0] = -1;
    let rows = match args.fetched {
        None => {
            columns[1..].copy_from_slice(pool);
            gather(&columns)
        }
        Some(fetched) => {
            // SAFETY: the places are one row.
            columns[1..].copy_from_slice(&unsafe { fetched.places.row(0) }[..live]);
            unit_copies(cx, Copied::Fetched(fetched), &columns)
        }
    };
    let rows = Mat::new(&rows, 1 + live, width);
    let targets = gather(args.positives);
    let targets = Mat::new(&targets, tokens, width);

    let padded = (1 + live).next_multiple_of(NR);
    let mut keep = cx.scratch::<f32>(padded);
    keep.fill(0.0);
    keep[1..=live].fill(1.0);
    let mut shift = cx.scratch::<f32>(padded);
    shift.fill(0.0);
    if let Objective::Softmax { logq: Some(logq) } = objective {
        shift[1..]
            .iter_mut()
            .zip(pool)
            .for_each(|(to, &id)| *to = logq[id as usize]);
    }
    let block = (BLOCK / padded).max(LEAST).min(tokens.max(1));
    let mut weights = cx.scratch::<f32>(block * (padded + NR));
    let weights = MatMut::new(&mut weights, block, padded + NR);
    let mut summed = cx.scratch::<f32>((1 + live) * width);
    summed.fill(0.0);
    let summed = MatMut::new(&mut summed, 1 + live, width);
    let mut losses = cx.scratch::<f64>(tokens);
    {
        let losses = Disjoint::new(&mut losses);
        for from in (0..tokens).step_by(block) {
            let count = block.min(tokens - from);
            let unit = users.view().row_range(from, count);
            let weigh = Weigh {
                from,
                args: &args,
                pool,
                objective,
                divisor,
                users: users.view(),
                targets,
                keep: &keep,
                shift: &shift,
                weights,
                // SAFETY: blocks follow one another.
                losses: Disjoint::new(unsafe { losses.range(from, count) }),
            };
            let logits = Shape {
                m: count,
                n: 1 + live,
                k: width,
            };
            multiply(cx, logits, &unit, Right::Transposed(rows), &weigh);
            let weights = weights.as_ref().row_range(0, count).columns(0, 1 + live);
            let gradient = UserGradient {
                from,
                users: &users,
                targets,
                coef: args.coef.as_ref(),
                to: args.du,
            };
            let back = Shape {
                m: count,
                n: width,
                k: 1 + live,
            };
            multiply(cx, back, &weights, Right::Plain(rows), &gradient);
            outer(cx, count, &weights, &unit, Grad::accumulate(summed), None);
        }
    }
    for i in 0..args.pool.len() {
        // SAFETY: no task runs; both have the row.
        unsafe {
            match i < live {
                true => args.dpool.row(i).copy_from_slice(&summed.row(1 + i)[..cols]),
                false => args.dpool.row(i).fill(0.0),
            }
        }
    }
    let sum: f64 = losses.iter().sum();
    *args.loss = (sum / f64::from(divisor)) as f32;
    if !args.loss.is_finite() {
        let token = losses.iter().position(|loss| !loss.is_finite());
        let got = token.map_or(format!("{sum}"), |t| format!("{} at token {t}", losses[t]));
        let expected = "finite logits and loss";
        return Err(fault(FaultKind::NotFinite, OP, "u or table", expected, got));
    }
    Ok(())
}

/// Converts a row of dot products to d loss / d (dot product).
struct Weigh<'a> {
    from: usize,
    args: &'a Pooled<'a>,
    pool: &'a [i32],
    objective: Objective<'a>,
    divisor: f32,
    users: Mat,
    targets: Mat,
    keep: &'a [f32],
    /// Subtracted from each column's logits.
    shift: &'a [f32],
    weights: MatMut,
    losses: Disjoint<'a, f64>,
}

impl Weigh<'_> {
    /// Calls `each` with the masked columns of token `t`.
    #[inline(always)]
    fn masked(&self, t: usize, mut each: impl FnMut(usize)) {
        let mut mask = |id: i32| {
            if let Ok(place) = self.pool.binary_search(&id) {
                each(1 + place);
            }
        };
        mask(self.args.positives[t]);
        if let Mask::History(Events {
            items,
            targets,
            offsets,
        }) = self.args.mask
        {
            let sequence = offsets.partition_point(|&offset| offset as usize <= t) - 1;
            let range = offsets[sequence] as usize..offsets[sequence + 1] as usize;
            items[range.clone()]
                .iter()
                .chain(&targets[range])
                .for_each(|&id| mask(id));
        }
    }
}

impl Finish for Weigh<'_> {
    fn whole_rows(&self) -> bool {
        true
    }
    #[inline(always)]
    unsafe fn take<V: Simd>(&self, i: usize, _j: usize, n: usize, acc: *mut f32) {
        let t = self.from + i;
        // SAFETY: row `i` is this call's; `acc` holds `n` numbers rounded up to 16.
        unsafe {
            let out = &mut self.weights.row(i)[..n.next_multiple_of(NR)];
            let (loss, coef) = (&mut self.losses.range(i, 1)[0], &mut self.args.coef.row(t)[0]);
            let positive = self.args.positives[t];
            if positive < 0 {
                (*loss, *coef) = (0.0, 0.0);
                out.fill(0.0);
                return;
            }
            let logits = std::slice::from_raw_parts_mut(acc, n.next_multiple_of(NR));
            let inverse = 1.0 / self.args.logit.temperature;
            for k in (0..logits.len()).step_by(LANES) {
                let shift = V::load(self.shift.as_ptr().add(k));
                V::load(acc.add(k)).mul(V::splat(inverse)).sub(shift).store(acc.add(k));
            }
            let (unit, target) = (self.users.row(t).as_ptr(), self.targets.row(t).as_ptr());
            logits[0] = dot::<V>(unit, target, self.args.u.cols) * inverse;
            if let Objective::Softmax { logq: Some(logq) } = self.objective {
                logits[0] -= logq[positive as usize];
            }
            logits[n..].fill(MASKED);
            self.masked(t, |column| logits[column] = MASKED);
            *loss = match self.objective {
                Objective::Softmax { .. } => softmax::<V>(logits, self.keep, out),
                Objective::Bce { beta } => binary::<V>(logits, self.keep, out, beta, n),
            };
            self.masked(t, |column| out[column] = 0.0);
            let scale = inverse / self.divisor;
            for k in (0..out.len()).step_by(LANES) {
                let weight = out.as_mut_ptr().add(k);
                V::load(weight).mul(V::splat(scale)).store(weight);
            }
            *coef = out[0];
            out[0] = 0.0;
        }
    }
}

struct UserGradient<'a> {
    from: usize,
    users: &'a UnitRows<'a>,
    targets: Mat,
    coef: Mat,
    to: Grad,
}

impl Finish for UserGradient<'_> {
    fn whole_rows(&self) -> bool {
        true
    }
    #[inline(always)]
    unsafe fn take<V: Simd>(&self, i: usize, _j: usize, n: usize, acc: *mut f32) {
        // SAFETY: row `from + i` is this call's; `acc` holds a padded row.
        unsafe {
            let t = self.from + i;
            let coef = V::splat(self.coef.row(t)[0]);
            for k in (0..n).step_by(LANES) {
                let target = V::load(self.targets.row(t).as_ptr().add(k));
                target.fma(coef, V::load(acc.add(k))).store(acc.add(k));
            }
            self.users.row_through_norm::<V>(t, acc, self.to);
        }
    }
}

/// Returns the number of rows of the pool.
fn check(args: &Pooled) -> Result<usize, crate::Fault> {
    let (tokens, width, items) = (args.u.rows, args.u.cols, args.table.rows());
    check_table(OP, "table", args.table, width)?;
    check_len(OP, "positives", args.positives.len(), tokens)?;
    check_mut(OP, "du", args.du.to, tokens, width)?;
    check_mut(OP, "dpool", args.dpool, args.pool.len(), width)?;
    check_mut(OP, "coef", args.coef, tokens, 1)?;
    check_mut(OP, "uhat", args.uhat, tokens, width)?;
    args.logit.check(OP)?;
    args.mask.check(OP, tokens)?;
    if let SharedObjective::Softmax { logq } = args.objective {
        check_vec(OP, "logq", logq, items)?;
    }
    args.mean_over.map_or(Ok(()), |n| check_positive(OP, "mean_over", n))?;
    if let Some(fetched) = args.fetched {
        let pool = Mat::new(args.pool, 1, args.pool.len());
        fetched.check(OP, width, pool, &(0..1))?;
    }
    check_ids(OP, "positives", args.positives, items, true)?;
    check_ids(OP, "pool", args.pool, items, true)?;
    let live = args.pool.iter().position(|&id| id < 0).unwrap_or(args.pool.len());
    if args.pool[..live].is_sorted_by(|a, b| a < b) && args.pool[live..].iter().all(|&id| id == -1) {
        return Ok(live);
    }
    let expected = "ascending ids, then -1";
    Err(fault(FaultKind::Argument, OP, "pool", expected, "another order"))
}
