//! One token of a sampled loss: gather its 1 + R item rows once, form the logits, the loss, the coefficients and the
//! user's gradient while the rows are in cache.

use super::Logit;
use super::norm::{ThroughNorm, UnitRows, unit_row, unit_rows};
use crate::ctx::Ctx;
use crate::gathered::{Terms, add_weighted, dots, prefetch_span, square_norms};
use crate::isa::Isa;
use crate::mat::{Grad, Mat, MatMut};
use crate::rows::{Element, Rows, store_vector};
use crate::simd::{Kernel, LANES, Simd, dispatch};
use crate::with_rows;

/// A table this often drawn from (draws per row) is worth a padded, normalised copy.
const DRAWS_PER_ROW: usize = 4;
/// Factors `1 + e^-|l|`, each at most 2, multiplied in a lane before a logarithm is taken.
const FACTORS: usize = 64;

/// What is minimised, see `sampled`.
#[derive(Clone, Copy)]
pub(super) enum Objective<'a> {
    Softmax { logq: Option<&'a [f32]> },
    Bce { beta: f32 },
}

/// The item rows as the tokens read them: the table itself, or a copy of a small one.
pub(super) enum Stage<'a> {
    Table { rows: Rows, normalize: bool },
    Copy(UnitRows<'a>),
}

impl<'a> Stage<'a> {
    pub fn new(cx: &'a Ctx, table: Rows, logit: Logit, draws: usize) -> Stage<'a> {
        if table.rows() * DRAWS_PER_ROW > draws {
            let normalize = logit.normalize_item;
            return Stage::Table { rows: table, normalize };
        }
        Stage::Copy(unit_rows(cx, table, logit.normalize_item, logit.eps))
    }
}

/// The loss with its outputs, shared by all tokens.
pub(super) struct Scorer<'a> {
    pub u: Mat,
    pub positives: &'a [i32],
    pub negatives: Mat<i32>,
    pub logit: Logit,
    pub objective: Objective<'a>,
    pub divisor: f32,
    pub du: Grad,
    pub coef: MatMut,
    pub uhat: MatMut,
}

impl Scorer<'_> {
    fn padded_draws(&self) -> usize {
        (1 + self.negatives.cols).next_multiple_of(LANES)
    }
    /// Floats of scratch a worker needs: uhat and its gradient; logits, row factors, masks and weights.
    pub fn buffer_len(&self) -> usize {
        2 * self.u.cols.next_multiple_of(LANES) + 4 * self.padded_draws()
    }
    pub fn drawn_len(&self) -> usize {
        self.padded_draws()
    }
}

/// Scores tokens `from..from + losses.len()`; writes their losses (not yet divided) and all outputs of those tokens.
///
/// # Safety
/// No other task touches these tokens; ids were checked; buffers have the scorer's lengths.
pub(super) unsafe fn score_tokens(
    isa: Isa,
    stage: &Stage,
    scorer: &Scorer,
    from: usize,
    losses: &mut [f64],
    buffer: &mut [f32],
    drawn: &mut [i32],
) {
    match stage {
        Stage::Copy(rows) => {
            let table = rows.view();
            let tokens = Tokens {
                table,
                normalize: false,
                scorer,
                from,
                losses,
                buffer,
                drawn,
            };
            unsafe { dispatch(isa, tokens) }
        }
        Stage::Table { rows, normalize } => with_rows!(Rows, *rows, table => {
            let tokens = Tokens { table, normalize: *normalize, scorer, from, losses, buffer, drawn };
            unsafe { dispatch(isa, tokens) }
        }),
    }
}

struct Tokens<'a, E> {
    table: Mat<E>,
    normalize: bool,
    scorer: &'a Scorer<'a>,
    from: usize,
    losses: &'a mut [f64],
    buffer: &'a mut [f32],
    drawn: &'a mut [i32],
}

impl<E: Element> Kernel for Tokens<'_, E> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        let scorer = self.scorer;
        let cols = scorer.u.cols;
        let width = cols.next_multiple_of(LANES);
        let eps = scorer.logit.normalize_user.then_some(scorer.logit.eps);
        let draws = scorer.padded_draws();
        let (uhat, rest) = self.buffer.split_at_mut(width);
        let (gradient, rest) = rest.split_at_mut(width);
        let (logits, rest) = rest.split_at_mut(draws);
        let (factors, rest) = rest.split_at_mut(draws);
        let (keep, weights) = rest.split_at_mut(draws);
        for (i, loss) in self.losses.iter_mut().enumerate() {
            let t = self.from + i;
            // SAFETY: token `t` is this task's; every buffer holds whole vectors; ids are in range.
            unsafe {
                let factor = unit_row::<V, f32>(scorer.u.row(t).as_ptr(), cols, eps, uhat);
                scorer.uhat.row(t).copy_from_slice(&uhat[..cols]);
                let coef = scorer.coef.row(t);
                let positive = scorer.positives[t];
                if positive < 0 {
                    *loss = 0.0;
                    coef.fill(0.0);
                    gradient.fill(0.0);
                } else {
                    draw(scorer.negatives.row(t), positive, self.drawn, keep);
                    self::logits::<V, E>(self.table, self.normalize, scorer, uhat, self.drawn, logits, factors);
                    *loss = match scorer.objective {
                        Objective::Softmax { .. } => softmax::<V>(logits, keep, weights),
                        Objective::Bce { beta } => binary::<V>(logits, keep, weights, beta, coef.len()),
                    };
                    finish::<V>(scorer, weights, factors, coef);
                    gradient.fill(0.0);
                    let terms = Drawn {
                        table: self.table,
                        drawn: &self.drawn[..coef.len()],
                        weights,
                    };
                    add_weighted::<V, E>(&terms, self.table.cols, gradient.as_mut_ptr());
                }
                let back = ThroughNorm {
                    factor,
                    eps,
                    cols,
                    accumulate: scorer.du.accumulate,
                };
                back.apply::<V>(uhat.as_ptr(), gradient.as_ptr(), scorer.du.to.row(t).as_mut_ptr());
            }
        }
    }
}

/// The positive, then the negatives. A masked draw reads the positive's row with `keep` 0: it cannot move the maximum.
#[inline(always)]
fn draw(negatives: &[i32], positive: i32, drawn: &mut [i32], keep: &mut [f32]) {
    drawn.fill(positive);
    keep.fill(0.0);
    for (j, &id) in negatives.iter().enumerate() {
        let masked = id < 0 || id == positive;
        drawn[j + 1] = if masked { positive } else { id };
        keep[j + 1] = if masked { 0.0 } else { 1.0 };
    }
}

#[inline(always)]
unsafe fn logits<V: Simd, E: Element>(
    table: Mat<E>,
    normalize: bool,
    scorer: &Scorer,
    uhat: &[f32],
    drawn: &[i32],
    logits: &mut [f32],
    factors: &mut [f32],
) {
    unsafe {
        let row = |j: usize| table.ptr.add(drawn[j] as usize * table.stride);
        let inverse = V::splat(1.0 / scorer.logit.temperature);
        for group in (0..drawn.len()).step_by(LANES) {
            if group + LANES < drawn.len() {
                for j in group + LANES..group + 2 * LANES {
                    prefetch_span::<V, E>(row(j), table.cols);
                }
            }
            let rows: [*const E; LANES] = std::array::from_fn(|lane| row(group + lane));
            let mut products = dots::<V, E>(uhat.as_ptr(), rows, table.cols);
            let mut factor = V::splat(1.0);
            if normalize {
                let norms = square_norms::<V, E>(rows, table.cols).sqrt();
                factor = factor.div(norms.max(V::splat(scorer.logit.eps)));
                products = products.mul(factor);
            }
            products.mul(inverse).store(logits.as_mut_ptr().add(group));
            factor.store(factors.as_mut_ptr().add(group));
        }
        if let Objective::Softmax { logq: Some(logq) } = scorer.objective {
            for (logit, &id) in logits.iter_mut().zip(drawn) {
                *logit -= logq[id as usize];
            }
        }
    }
}

/// Loss of one token; `weights` becomes d loss / d logit, the positive's first.
#[inline(always)]
unsafe fn softmax<V: Simd>(logits: &[f32], keep: &[f32], weights: &mut [f32]) -> f64 {
    unsafe {
        let (mut largest, mut poison) = (V::splat(f32::NEG_INFINITY), V::zero());
        for k in (0..logits.len()).step_by(LANES) {
            let logit = V::load(logits.as_ptr().add(k));
            largest = largest.max(logit);
            poison = logit.fma(V::zero(), poison); // NaN once any logit is NaN or infinite
        }
        let largest = largest.lanes_max();
        let mut others = V::zero();
        for k in (0..logits.len()).step_by(LANES) {
            let power = V::load(logits.as_ptr().add(k)).sub(V::splat(largest)).exp();
            let power = power.mul(V::load(keep.as_ptr().add(k)));
            others = others.add(power);
            power.store(weights.as_mut_ptr().add(k));
        }
        let others = f64::from(others.sum());
        let below = f64::from(logits[0] - largest);
        let own = below.exp();
        let total = own + others;
        let inverse = V::splat((1.0 / total) as f32);
        for k in (0..weights.len()).step_by(LANES) {
            let weight = weights.as_mut_ptr().add(k);
            V::load(weight).mul(inverse).store(weight);
        }
        weights[0] = (-others / total) as f32;
        // The first form is exact for a confident model, the second for a hopeless one.
        let loss = if own > 1e-12 {
            (others / own).ln_1p()
        } else {
            total.ln() - below
        };
        loss + f64::from(poison.sum())
    }
}

/// As [`softmax`], for (g)BCE over `count` = 1 + R logits.
#[inline(always)]
unsafe fn binary<V: Simd>(logits: &[f32], keep: &[f32], weights: &mut [f32], beta: f32, count: usize) -> f64 {
    unsafe {
        let mean = V::splat(1.0 / count as f32);
        let (mut linear, mut poison) = (V::zero(), V::zero());
        let (mut product, mut factors, mut logarithms) = (V::splat(1.0), 0, 0.0);
        for k in (0..logits.len()).step_by(LANES) {
            let logit = V::load(logits.as_ptr().add(k));
            let keep = V::load(keep.as_ptr().add(k));
            poison = logit.fma(V::zero(), poison);
            // softplus(l) = max(l, 0) + ln(1 + e^-|l|)
            let minus = V::zero().sub(logit);
            linear = logit.max(V::zero()).fma(keep, linear);
            let power = logit.min(minus).exp().mul(keep);
            product = product.mul(V::splat(1.0).add(power));
            logit.sigmoid().mul(keep).mul(mean).store(weights.as_mut_ptr().add(k));
            factors += 1;
            if factors == FACTORS {
                logarithms += logarithm_of_lanes(product);
                (product, factors) = (V::splat(1.0), 0);
            }
        }
        logarithms += logarithm_of_lanes(product);
        let (own, beta) = (f64::from(logits[0]), f64::from(beta));
        weights[0] = (-beta / (1.0 + own.exp()) / count as f64) as f32;
        let own = (-own).max(0.0) + (-own.abs()).exp().ln_1p();
        (beta * own + f64::from(linear.sum()) + logarithms) / count as f64 + f64::from(poison.sum())
    }
}

#[inline(always)]
unsafe fn logarithm_of_lanes<V: Simd>(product: V) -> f64 {
    let mut lanes = [0.0f32; LANES];
    unsafe { product.store(lanes.as_mut_ptr()) };
    lanes.iter().map(|&lane| f64::from(lane).ln()).sum()
}

/// Turns d loss / d logit into the coefficients (output) and the weights of the stored rows.
#[inline(always)]
unsafe fn finish<V: Simd>(scorer: &Scorer, weights: &mut [f32], factors: &[f32], coef: &mut [f32]) {
    unsafe {
        let scale = V::splat(1.0 / (scorer.logit.temperature * scorer.divisor));
        for k in 0..weights.len() / LANES {
            let weight = weights.as_mut_ptr().add(k * LANES);
            let scaled = V::load(weight).mul(scale);
            store_vector::<V, f32>(scaled, coef.as_mut_ptr(), k, coef.len());
            scaled.mul(V::load(factors.as_ptr().add(k * LANES))).store(weight);
        }
    }
}

struct Drawn<'a, E> {
    table: Mat<E>,
    drawn: &'a [i32],
    weights: &'a [f32],
}

impl<E: Element> Terms<E> for Drawn<'_, E> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.drawn.len()
    }
    #[inline(always)]
    unsafe fn term(&self, j: usize) -> (*const E, f32) {
        unsafe {
            let id = *self.drawn.get_unchecked(j) as usize;
            (
                self.table.ptr.add(id * self.table.stride),
                *self.weights.get_unchecked(j),
            )
        }
    }
}
