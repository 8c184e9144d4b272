//! The rows that a group of tokens shares: their logits against each token, and their weighted sums.

use super::Share;
use super::group::Group;
use crate::gathered::{Ahead, dot, dots_asking, square_norms_asking};
use crate::loss::objective::Objective;
use crate::mat::Mat;
use crate::rows::Element;
use crate::simd::{LANES, Simd};

/// The draws of one group.
pub(super) struct Drawn<'a, E> {
    /// Source of the draws' rows: the table, or rows fetched from it.
    pub table: Mat<E>,
    /// Ids of the draws.
    pub drawn: &'a [i32],
    /// Their rows in `table`.
    pub at: &'a [i32],
    /// Factors of the rows of `table`; default: computed from the rows.
    pub known: Option<&'a [f32]>,
    pub group: &'a Group<'a>,
}

/// The positives of a group, as rows of f32.
pub(super) struct Positives<'a> {
    pub ids: &'a [i32],     // [k], -1: no token
    pub rows: &'a [f32],    // [k, D rounded up to whole vectors]
    pub factors: &'a [f32], // [k]
}

impl<E: Element> Drawn<'_, E> {
    #[inline(always)]
    fn row(&self, id: i32) -> *const E {
        self.table.ptr.wrapping_add(id.max(0) as usize * self.table.stride)
    }

    /// # Safety
    /// This CPU has `V`'s instructions; `rows` point to whole rows of the table.
    #[inline(always)]
    unsafe fn factors<V: Simd>(&self, rows: [*const E; LANES], ahead: &mut Ahead<E>) -> V {
        // SAFETY: the caller's rows.
        unsafe {
            let lengths = square_norms_asking::<V, E>(rows, self.table.cols, ahead).sqrt();
            V::splat(1.0).div(lengths.max(V::splat(self.group.logit.eps)))
        }
    }

    /// `logits[i]`: the positive's, then those of the draws.
    ///
    /// # Safety
    /// This CPU has `V`'s instructions; targets and draws are rows of the table, or negative where there is none; `uhat` holds a
    /// row per target, rounded up to whole vectors, and the other buffers whole vectors per target.
    #[inline(always)]
    pub unsafe fn logits<V: Simd>(&self, uhat: &[f32], positives: &Positives, logits: &mut [f32], factors: &mut [f32]) {
        let Group {
            logit,
            share,
            negatives,
            ..
        } = *self.group;
        let targets = positives.ids;
        let (cols, k) = (self.table.cols, targets.len());
        let width = cols.next_multiple_of(LANES);
        let (padded, draws) = (self.drawn.len(), negatives.cols);
        let per = draws / k.max(1);
        // SAFETY: ids are rows of the table; buffers hold whole vectors.
        unsafe {
            let inverse = V::splat(1.0 / logit.temperature);
            for i in 0..k {
                let (user, own) = (uhat[i * width..].as_ptr(), positives.rows[i * width..].as_ptr());
                let product = dot::<V>(user, own, cols) * positives.factors[i];
                logits[i * padded..][..padded].fill(product * (1.0 / logit.temperature));
            }
            for from in (0..draws).step_by(LANES) {
                let mut rows = [self.table.ptr; LANES];
                for (lane, row) in rows.iter_mut().enumerate() {
                    *row = self.row(self.at[from + lane]);
                }
                let mut next = [self.table.ptr; LANES];
                for (lane, row) in next.iter_mut().enumerate() {
                    *row = self.row(self.at.get(from + LANES + lane).copied().unwrap_or_default());
                }
                let mut ahead = Ahead::new(next, cols, ASKING);
                let factor = match self.known {
                    Some(known) => {
                        let at = &self.at[from..from + LANES];
                        V::load(std::array::from_fn::<f32, LANES, _>(|lane| known[at[lane] as usize]).as_ptr())
                    }
                    None if logit.normalize_item => self.factors::<V>(rows, &mut ahead),
                    None => V::splat(1.0),
                };
                factor.store(factors.as_mut_ptr().add(from));
                let count = LANES.min(draws - from);
                for i in 0..k {
                    // With scalars, only logits that this token owns; the others copy them.
                    let owns = i * per < from + count && from < (i + 1) * per;
                    if targets[i] < 0 && share == Share::Outputs || share == Share::Scalars && !owns {
                        continue;
                    }
                    let dot = dots_asking::<V, E>(uhat[i * width..].as_ptr(), rows, cols, &mut ahead);
                    let mut lanes = [0.0; LANES];
                    dot.mul(factor).mul(inverse).store(lanes.as_mut_ptr());
                    for (lane, x) in lanes.iter().enumerate().take(count) {
                        let j = from + lane;
                        match share {
                            Share::Outputs => logits[i * padded + 1 + j] = *x,
                            Share::Scalars if j / per == i => {
                                (0..k).for_each(|to| logits[to * padded + 1 + j] = *x);
                            }
                            Share::Scalars => {}
                        }
                    }
                }
            }
        }
        if let Objective::Softmax { logq: Some(logq) } = self.group.objective {
            for (row, &target) in logits.chunks_mut(padded).zip(targets) {
                row[0] -= logq[target.max(0) as usize];
                row[1..]
                    .iter_mut()
                    .zip(self.drawn)
                    .for_each(|(logit, &id)| *logit -= logq[id as usize]);
            }
        }
    }
}

/// Passes over the current rows during which the next ones are prefetched.
const ASKING: usize = 2;
