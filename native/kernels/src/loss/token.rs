//! One token of a sampled loss: gather its 1 + R item rows once, form the logits, the loss, the coefficients and the
//! user's gradient while the rows are in cache, and prefetch the next token's rows meanwhile.

use super::Logit;
use super::fetched::Fetched;
use super::norm::{ThroughNorm, unit_row};
use super::objective::{Objective, binary, softmax};
use super::stage::{Beside, Lengths, Stage};
use super::weighted::Weighted;
use crate::gathered::{One, add_weighted, dot, dots, prefetch_span, square_norms};
use crate::isa::Isa;
use crate::mat::{Grad, Mat, MatMut};
use crate::rows::{Element, store_vector};
use crate::simd::{Kernel, LANES, Simd, dispatch};
use crate::with_rows;

/// Rows of fewer bytes than this are prefetched; for longer ones the hardware prefetcher is better
/// (rows of 1 KB: 13.5 GB/s, prefetched 11.8; of 256 bytes: 7.2 and 7.7; one thread of Zen 3, 2026-11).
const SHORT: usize = 1024;
/// Bytes of a token's rows up to which the next token's are prefetched too: both fit easily into a 512 KB L2.
const AHEAD: usize = 96 * 1024;

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
    /// Floats of scratch a worker needs: uhat, its gradient and the positive's row; logits, row factors, masks and weights.
    pub fn floats(&self) -> usize {
        3 * self.u.cols.next_multiple_of(LANES) + 4 * self.padded_draws()
    }
    /// Ids of scratch a worker needs: the draws, and where their rows are.
    pub fn ids(&self) -> usize {
        2 * self.padded_draws()
    }
}

/// The tokens of one task, `from..from + losses.len()`, and its worker's scratch.
pub(super) struct Tile<'a> {
    pub from: usize,
    /// Overwritten with each token's loss, not yet divided.
    pub losses: &'a mut [f64],
    pub floats: &'a mut [f32],
    pub ids: &'a mut [i32],
}

/// Writes the losses and all outputs of a tile's tokens.
///
/// # Safety
/// No other task touches these tokens; ids were checked; the scratch has the scorer's lengths.
pub(super) unsafe fn score_tokens(isa: Isa, stage: &Stage, scorer: &Scorer, tile: Tile) {
    match stage {
        Stage::Copy(rows) => {
            let (table, lengths, prefetch, apart) = (rows.view(), &Lengths::Unit, false, None);
            // SAFETY: by this function's contract.
            unsafe {
                dispatch(
                    isa,
                    Tokens {
                        table,
                        lengths,
                        prefetch,
                        apart,
                        scorer,
                        tile,
                    },
                )
            }
        }
        Stage::Table(rows, lengths) => with_rows!(Rows, *rows, table => {
            let prefetch = table.cols * rows.bytes_per_element() < SHORT;
            // SAFETY: by this function's contract.
            unsafe { dispatch(isa, Tokens { table, lengths, prefetch, apart: None, scorer, tile }) }
        }),
        Stage::Fetched(beside) => with_rows!(Rows, beside.fetched.rows, table => {
            let prefetch = table.cols * beside.fetched.rows.bytes_per_element() < SHORT;
            let lengths = &Lengths::Given(beside.fetched.factors);
            let apart = Some(*beside);
            // SAFETY: by this function's contract.
            unsafe { dispatch(isa, Tokens { table, lengths, prefetch, apart, scorer, tile }) }
        }),
    }
}

impl Beside<'_> {
    /// Indices of the rows of a token's negatives; none beyond the segment.
    ///
    /// # Safety
    /// The token is one of the segment, or the next.
    #[inline(always)]
    unsafe fn places(&self, t: usize) -> &[i32] {
        let row = t - self.first;
        if row == self.fetched.places.rows {
            return &[];
        }
        // SAFETY: `row` is a row of the places.
        unsafe { self.fetched.places.row(row) }
    }

    /// Copies the row of a token's positive to `own`; returns its factor.
    ///
    /// # Safety
    /// This CPU has `V`'s instructions; the token is trained, and `own` holds a row rounded up to whole vectors.
    #[inline(always)]
    unsafe fn positive<V: Simd>(&self, t: usize, logit: &Logit, own: &mut [f32]) -> f32 {
        let cols = self.table.cols();
        // SAFETY: the positive has a row; `own` holds whole vectors.
        unsafe {
            with_rows!(Rows, self.table, rows => {
                unit_row::<V, _>(rows.row(self.positives[t] as usize).as_ptr(), cols, None, own)
            });
            match logit.normalize_item {
                true => 1.0 / dot::<V>(own.as_ptr(), own.as_ptr(), cols).sqrt().max(logit.eps),
                false => 1.0,
            }
        }
    }
}

struct Tokens<'a, E> {
    /// The rows of all draws, or of the negatives alone.
    table: Mat<E>,
    lengths: &'a Lengths<'a>,
    /// Whether rows are worth prefetching.
    prefetch: bool,
    apart: Option<Beside<'a>>,
    scorer: &'a Scorer<'a>,
    tile: Tile<'a>,
}

impl<E: Element> Kernel for Tokens<'_, E> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        let Tokens {
            table,
            lengths,
            prefetch,
            apart,
            scorer,
            tile,
        } = self;
        let cols = scorer.u.cols;
        let width = cols.next_multiple_of(LANES);
        let eps = scorer.logit.normalize_user.then_some(scorer.logit.eps);
        let draws = scorer.padded_draws();
        let (uhat, rest) = tile.floats.split_at_mut(width);
        let (gradient, rest) = rest.split_at_mut(width);
        let (own, rest) = rest.split_at_mut(width);
        let (logits, rest) = rest.split_at_mut(draws);
        let (factors, rest) = rest.split_at_mut(draws);
        let (keep, weights) = rest.split_at_mut(draws);
        let (drawn, places) = tile.ids.split_at_mut(draws);
        let prefetch_next = prefetch && draws * table.cols * size_of::<E>() <= AHEAD;
        for (i, loss) in tile.losses.iter_mut().enumerate() {
            let t = tile.from + i;
            // SAFETY: token `t` is this task's; every buffer holds whole vectors; ids are in range.
            unsafe {
                let factor = unit_row::<V, f32>(scorer.u.row(t).as_ptr(), cols, eps, uhat);
                scorer.uhat.row(t).copy_from_slice(&uhat[..cols]);
                let coef = scorer.coef.row(t);
                let positive = scorer.positives[t];
                gradient.fill(0.0);
                if positive < 0 {
                    *loss = 0.0;
                    coef.fill(0.0);
                } else {
                    draw(scorer.negatives.row(t), positive, drawn, keep);
                    let at = match apart {
                        None => &*drawn,
                        Some(apart) => {
                            places.fill(0);
                            let named = apart.places(t).iter();
                            places[1..]
                                .iter_mut()
                                .zip(named)
                                .for_each(|(to, &place)| *to = Fetched::place(place));
                            &*places
                        }
                    };
                    let rows = Drawn {
                        table,
                        lengths,
                        prefetch,
                        at,
                    };
                    rows.logits::<V>(scorer, uhat, logits, factors);
                    if let Some(apart) = apart {
                        factors[0] = apart.positive::<V>(t, &scorer.logit, own);
                        let product = dot::<V>(uhat.as_ptr(), own.as_ptr(), cols) * factors[0];
                        logits[0] = product * (1.0 / scorer.logit.temperature);
                        for j in (1..draws).filter(|j| keep[*j] == 0.0) {
                            logits[j] = logits[0];
                        }
                    }
                    if let Objective::Softmax { logq: Some(logq) } = scorer.objective {
                        for (logit, &id) in logits.iter_mut().zip(&*drawn) {
                            *logit -= logq[id as usize];
                        }
                    }
                    *loss = match scorer.objective {
                        Objective::Softmax { .. } => softmax::<V>(logits, keep, weights),
                        Objective::Bce { beta } => binary::<V>(logits, keep, weights, beta, coef.len()),
                    };
                    finish::<V>(scorer, weights, factors, coef);
                    let ahead = prefetch_next && t + 1 < scorer.u.rows;
                    let next = ahead.then(|| match &apart {
                        None => scorer.negatives.row(t + 1),
                        Some(apart) => apart.places(t + 1),
                    });
                    if apart.is_some() {
                        let positive = One(own.as_ptr(), std::mem::take(&mut weights[0]));
                        add_weighted::<V, f32>(&positive, cols, gradient.as_mut_ptr());
                    }
                    let terms = Weighted {
                        table,
                        at: &at[..coef.len()],
                        weights,
                        next,
                    };
                    add_weighted::<V, E>(&terms, table.cols, gradient.as_mut_ptr());
                }
                let accumulate = scorer.du.accumulate;
                let back = ThroughNorm {
                    factor,
                    eps,
                    cols,
                    accumulate,
                };
                back.apply::<V>(uhat.as_ptr(), gradient.as_ptr(), scorer.du.to.row(t).as_mut_ptr());
            }
        }
    }
}

/// The positive, then the negatives. A masked draw reads the positive's row with `keep` 0: it does not affect the maximum.
#[inline(always)]
fn draw(negatives: &[i32], positive: i32, drawn: &mut [i32], keep: &mut [f32]) {
    drawn.fill(positive);
    keep.fill(0.0);
    for ((&id, drawn), keep) in negatives.iter().zip(&mut drawn[1..]).zip(&mut keep[1..]) {
        let masked = id < 0 || id == positive;
        *drawn = if masked { positive } else { id };
        *keep = if masked { 0.0 } else { 1.0 };
    }
}

/// The rows of one token.
struct Drawn<'a, E> {
    table: Mat<E>,
    lengths: &'a Lengths<'a>,
    prefetch: bool,
    at: &'a [i32],
}

impl<E: Element> Drawn<'_, E> {
    #[inline(always)]
    fn row(&self, j: usize) -> *const E {
        self.table.ptr.wrapping_add(self.at[j] as usize * self.table.stride)
    }

    /// Logits of all draws, not yet corrected for the sampling, and the factor (1 / length, or 1) of each row.
    ///
    /// # Safety
    /// This CPU has `V`'s instructions; the draws are rows of the table, a multiple of eight of them; `logits` and `factors` are as
    /// long, `uhat` is a row rounded up to whole vectors.
    #[inline(always)]
    unsafe fn logits<V: Simd>(&self, scorer: &Scorer, uhat: &[f32], logits: &mut [f32], factors: &mut [f32]) {
        let cols = self.table.cols;
        let count = self.at.len();
        let known = match self.lengths {
            Lengths::Known(known) => Some(&known[..]),
            Lengths::Given(known) => Some(*known),
            _ => None,
        };
        match known {
            Some(known) => factors
                .iter_mut()
                .zip(self.at)
                .for_each(|(to, &row)| *to = known[row as usize]),
            None => factors.fill(1.0),
        }
        // SAFETY: ids are rows of the table; buffers hold whole vectors.
        unsafe {
            let inverse = V::splat(1.0 / scorer.logit.temperature);
            for group in (0..count).step_by(LANES) {
                let next = if self.prefetch {
                    group + LANES..count.min(group + 2 * LANES)
                } else {
                    0..0
                };
                for j in next {
                    prefetch_span::<V, E>(self.row(j), cols);
                }
                let mut rows = [self.table.ptr; LANES];
                for (lane, row) in rows.iter_mut().enumerate() {
                    *row = self.row(group + lane);
                }
                let factor = factors.as_mut_ptr().add(group);
                if matches!(self.lengths, Lengths::Computed) {
                    let norms = square_norms::<V, E>(rows, cols).sqrt();
                    V::splat(1.0).div(norms.max(V::splat(scorer.logit.eps))).store(factor);
                }
                let products = dots::<V, E>(uhat.as_ptr(), rows, cols).mul(V::load(factor));
                products.mul(inverse).store(logits.as_mut_ptr().add(group));
            }
        }
    }
}

/// Converts d loss / d logit to the coefficients (output) and the weights of the stored rows.
///
/// # Safety
/// This CPU has `V`'s instructions; `weights` and `factors` have one length, a multiple of eight, and `coef` is no longer.
#[inline(always)]
unsafe fn finish<V: Simd>(scorer: &Scorer, weights: &mut [f32], factors: &[f32], coef: &mut [f32]) {
    // SAFETY: by this function's contract.
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
