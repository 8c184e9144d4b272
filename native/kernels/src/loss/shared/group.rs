//! One group of tokens: the rows of its draws are read once for all of its tokens, in chunks that stay in L1, for logits and again
//! for the users' gradients.

use super::draws::{Drawn, Positives};
use super::{MOST, Share};
use crate::gathered::{One, add_weighted, dot};
use crate::loss::Logit;
use crate::loss::fetched::Fetched;
use crate::loss::history::{Mask, Seen};
use crate::loss::norm::{ThroughNorm, unit_row};
use crate::loss::objective::{Objective, binary, softmax};
use crate::loss::weighted::Weighted;
use crate::mat::{Disjoint, Grad, Mat, MatMut};
use crate::rows::{Element, Rows};
use crate::simd::{Kernel, LANES, Simd};
use crate::with_rows;

/// Rows per chunk, which are used for all tokens of a group before the next ones are read; a multiple of [`LANES`].
const CHUNK: usize = 16;

/// Shared by all groups.
pub(super) struct Group<'a> {
    pub u: Mat,
    pub positives: &'a [i32],
    /// Row of each token's positive.
    pub positive_rows: &'a [i32],
    /// The segment's first group.
    pub first: usize,
    pub members: Mat<i32>,
    pub negatives: Mat<i32>,
    /// The rows of positives.
    pub table: Rows,
    pub fetched: Option<Fetched<'a>>,
    pub mask: Mask<'a>,
    pub share: Share,
    pub objective: Objective<'a>,
    pub logit: Logit,
    pub divisor: f32,
    pub du: Grad,
    pub coef: MatMut,
    pub uhat: MatMut,
    pub own: (Disjoint<'a, i32>, Disjoint<'a, f32>),
}

impl Group<'_> {
    /// No token, or one that is not trained.
    fn is_absent(&self, member: i32) -> bool {
        member < 0 || self.positives[member as usize] < 0
    }

    /// Copies the row of a token's positive to `own`; returns its factor.
    ///
    /// # Safety
    /// This CPU has `V`'s instructions; the token is trained, and `own` holds a row rounded up to whole vectors.
    #[inline(always)]
    unsafe fn positive<V: Simd>(&self, token: usize, own: &mut [f32]) -> f32 {
        let cols = self.u.cols;
        // SAFETY: the positive has a row; `own` holds whole vectors.
        unsafe {
            with_rows!(Rows, self.table, table => {
                unit_row::<V, _>(table.row(self.positive_rows[token] as usize).as_ptr(), cols, None, own)
            });
            match self.logit.normalize_item {
                true => 1.0 / dot::<V>(own.as_ptr(), own.as_ptr(), cols).sqrt().max(self.logit.eps),
                false => 1.0,
            }
        }
    }
}

/// Groups `from ..` of one task, and its worker's scratch.
pub(super) struct Groups<'a, E> {
    /// The rows of negatives.
    pub table: Mat<E>,
    pub group: &'a Group<'a>,
    pub from: usize,
    pub losses: &'a mut [f64],
    pub floats: &'a mut [f32],
    pub ids: &'a mut [i32],
}

impl<E: Element> Kernel for Groups<'_, E> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        let Groups {
            table,
            group,
            from,
            losses,
            floats,
            ids,
        } = self;
        let (cols, k) = (group.u.cols, group.members.cols);
        let width = cols.next_multiple_of(LANES);
        let draws = group.negatives.cols;
        let padded = (1 + draws).next_multiple_of(LANES);
        let per = draws / k;
        let eps = group.logit.normalize_user.then_some(group.logit.eps);
        let (uhat, rest) = floats.split_at_mut(k * width);
        let (gradient, rest) = rest.split_at_mut(k * width);
        let (own, rest) = rest.split_at_mut(k * width);
        let (logits, rest) = rest.split_at_mut(k * padded);
        let (keep, rest) = rest.split_at_mut(k * padded);
        let (weights, rest) = rest.split_at_mut(k * padded);
        let (factors, folded) = rest.split_at_mut(padded);
        let (drawn, rest) = ids.split_at_mut(padded);
        let (places, history) = rest.split_at_mut(padded);
        let mut seen = Seen::new(group.mask, history);
        for (at, losses) in losses.chunks_mut(k).enumerate() {
            let g = from + at;
            // SAFETY: group `g` and its tokens are this task's; buffers hold whole vectors; ids were checked.
            unsafe {
                let members = group.members.row(g);
                let ids = group.negatives.row(g);
                let (mut scales, mut targets) = ([0.0f32; MOST], [-1; MOST]);
                let mut lengths = [1.0f32; MOST];
                let targets = &mut targets[..k];
                gradient.fill(0.0);
                keep.fill(0.0);
                drawn.fill(0);
                for (to, &id) in drawn.iter_mut().zip(ids) {
                    *to = id.max(0);
                }
                if let Some(fetched) = &group.fetched {
                    places.fill(0);
                    let named = fetched.places.row(g - group.first).iter();
                    places
                        .iter_mut()
                        .zip(named)
                        .for_each(|(to, &place)| *to = Fetched::place(place));
                }
                for (i, &member) in members.iter().enumerate() {
                    let row = &mut uhat[i * width..][..width];
                    losses[i] = 0.0;
                    if group.is_absent(member) {
                        row.fill(0.0);
                        own[i * width..][..width].fill(0.0);
                    } else {
                        let token = member as usize;
                        scales[i] = unit_row::<V, f32>(group.u.row(token).as_ptr(), cols, eps, row);
                        targets[i] = group.positives[token];
                        lengths[i] = group.positive::<V>(token, &mut own[i * width..][..width]);
                        seen.turn_to(token);
                        for (j, &id) in ids.iter().enumerate() {
                            let ownerless = group.share == Share::Scalars && group.is_absent(members[j / per]);
                            let masked = ownerless || seen.masks(id, targets[i]);
                            keep[i * padded + 1 + j] = if masked { 0.0 } else { 1.0 };
                        }
                    }
                    group.uhat.row(g * k + i).copy_from_slice(&row[..cols]);
                }
                group.own.0.range(g * k, k).copy_from_slice(targets);
                let at = if group.fetched.is_some() { &*places } else { &*drawn };
                let rows = Drawn {
                    table,
                    drawn,
                    at,
                    known: group.fetched.as_ref().map(|fetched| fetched.factors),
                    group,
                };
                let positives = Positives {
                    ids: targets,
                    rows: own,
                    factors: &lengths[..k],
                };
                rows.logits::<V>(uhat, &positives, logits, factors);
                for (i, loss) in losses.iter_mut().enumerate() {
                    let weights = &mut weights[i * padded..][..padded];
                    if targets[i] < 0 {
                        weights.fill(0.0);
                        continue;
                    }
                    let logits = &mut logits[i * padded..][..padded];
                    let keep = &keep[i * padded..][..padded];
                    // Masked ones copy the positive's, which does not affect the maximum.
                    for j in 1..padded {
                        if keep[j] == 0.0 {
                            logits[j] = logits[0];
                        }
                    }
                    *loss = match group.objective {
                        Objective::Softmax { .. } => softmax::<V>(logits, keep, weights),
                        Objective::Bce { beta } => binary::<V>(logits, keep, weights, beta, 1 + draws),
                    };
                }
                if group.share == Share::Scalars {
                    fold(weights, folded, padded, per);
                }
                let scale = 1.0 / (group.logit.temperature * group.divisor);
                let (own_coef, coef) = (group.own.1.range(g * k, k), group.coef.row(g));
                for i in 0..k {
                    let weights = &mut weights[i * padded..][..padded];
                    weights[0] *= scale;
                    own_coef[i] = weights[0];
                    for (j, (weight, factor)) in weights[1..=draws].iter_mut().zip(&*factors).enumerate() {
                        *weight *= scale;
                        coef[j * k + i] = *weight;
                        *weight *= factor;
                    }
                }
                for i in (0..k).filter(|i| targets[*i] >= 0) {
                    let weights = &weights[i * padded..][..padded];
                    let positive = One(own[i * width..].as_ptr(), lengths[i] * weights[0]);
                    add_weighted::<V, f32>(&positive, cols, gradient[i * width..].as_mut_ptr());
                }
                for chunk in (0..draws).step_by(CHUNK) {
                    let end = draws.min(chunk + CHUNK);
                    for i in (0..k).filter(|i| targets[*i] >= 0) {
                        let terms = Weighted {
                            table,
                            at: &at[chunk..end],
                            weights: &weights[i * padded + 1 + chunk..],
                            next: None,
                        };
                        add_weighted::<V, E>(&terms, cols, gradient[i * width..].as_mut_ptr());
                    }
                }
                for i in (0..k).filter(|i| targets[*i] >= 0) {
                    let back = ThroughNorm {
                        factor: scales[i],
                        eps,
                        cols,
                        accumulate: group.du.accumulate,
                    };
                    let to = group.du.to.row(members[i] as usize).as_mut_ptr();
                    back.apply::<V>(uhat[i * width..].as_ptr(), gradient[i * width..].as_ptr(), to);
                }
            }
        }
    }
}

/// A draw's weight is the sum over all tokens of the group, and belongs to the token that drew it.
fn fold(weights: &mut [f32], sums: &mut [f32], padded: usize, per: usize) {
    let sum = &mut sums[..padded];
    sum.fill(0.0);
    for row in weights.chunks(padded) {
        sum.iter_mut().zip(row).for_each(|(sum, weight)| *sum += weight);
    }
    for (i, row) in weights.chunks_mut(padded).enumerate() {
        row[1..].fill(0.0);
        let own = 1 + i * per..1 + (i + 1) * per;
        row[own.clone()].copy_from_slice(&sum[own]);
    }
}
