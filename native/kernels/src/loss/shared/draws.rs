//! The rows that a group of tokens shares: their logits against each token, and their weighted sums.

use super::Share;
use super::group::Group;
use crate::gathered::{Terms, dots, prefetch_span, square_norms};
use crate::loss::objective::Objective;
use crate::mat::Mat;
use crate::rows::Element;
use crate::simd::{LANES, Simd};

/// The draws of one group.
pub(super) struct Drawn<'a, E> {
    pub table: Mat<E>,
    pub drawn: &'a [i32],
    pub group: &'a Group<'a>,
}

impl<E: Element> Drawn<'_, E> {
    #[inline(always)]
    fn row(&self, id: i32) -> *const E {
        self.table.ptr.wrapping_add(id.max(0) as usize * self.table.stride)
    }

    /// What a row is multiplied by.
    #[inline(always)]
    pub unsafe fn factor<V: Simd>(&self, id: i32) -> f32 {
        if !self.group.logit.normalize_item {
            return 1.0;
        }
        let mut lanes = [0.0; LANES];
        // SAFETY: the caller's id is a row.
        unsafe { self.factors::<V>([self.row(id); LANES]).store(lanes.as_mut_ptr()) };
        lanes[0]
    }

    #[inline(always)]
    unsafe fn factors<V: Simd>(&self, rows: [*const E; LANES]) -> V {
        // SAFETY: the caller's rows.
        unsafe {
            let lengths = square_norms::<V, E>(rows, self.table.cols).sqrt();
            V::splat(1.0).div(lengths.max(V::splat(self.group.logit.eps)))
        }
    }

    /// `logits[i]`: the positive's, then those of the draws.
    #[inline(always)]
    pub unsafe fn logits<V: Simd>(&self, uhat: &[f32], targets: &[i32], logits: &mut [f32], factors: &mut [f32]) {
        let Group {
            logit,
            share,
            negatives,
            ..
        } = *self.group;
        let (cols, k) = (self.table.cols, targets.len());
        let width = cols.next_multiple_of(LANES);
        let (padded, draws) = (self.drawn.len(), negatives.cols);
        let per = draws / k.max(1);
        // SAFETY: ids are rows of the table; buffers hold whole vectors.
        unsafe {
            let inverse = V::splat(1.0 / logit.temperature);
            for (i, &target) in targets.iter().enumerate() {
                let mut lanes = [0.0; LANES];
                let own = [self.row(target); LANES];
                let dot = dots::<V, E>(uhat[i * width..].as_ptr(), own, cols);
                dot.mul(V::splat(self.factor::<V>(target)))
                    .mul(inverse)
                    .store(lanes.as_mut_ptr());
                logits[i * padded..][..padded].fill(lanes[0]);
            }
            for from in (0..draws).step_by(LANES) {
                let mut rows = [self.table.ptr; LANES];
                for (lane, row) in rows.iter_mut().enumerate() {
                    *row = self.row(self.drawn[from + lane]);
                }
                for ahead in from + LANES..draws.min(from + 2 * LANES) {
                    prefetch_span::<V, E>(self.row(self.drawn[ahead]), cols.min(AHEAD));
                }
                let factor = if logit.normalize_item {
                    self.factors::<V>(rows)
                } else {
                    V::splat(1.0)
                };
                factor.store(factors.as_mut_ptr().add(from));
                let count = LANES.min(draws - from);
                for i in 0..k {
                    // Of scalars only those whose owner is this token; the others copy them.
                    let owns = i * per < from + count && from < (i + 1) * per;
                    if targets[i] < 0 && share == Share::Outputs || share == Share::Scalars && !owns {
                        continue;
                    }
                    let dot = dots::<V, E>(uhat[i * width..].as_ptr(), rows, cols);
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

/// Floats of a row that are asked for ahead; the hardware fetches the rest of longer ones.
const AHEAD: usize = 256;
/// A single row.
pub(super) struct One<E>(pub *const E, pub f32);

impl<E: Element> Terms<E> for One<E> {
    #[inline(always)]
    fn count(&self) -> usize {
        1
    }
    #[inline(always)]
    unsafe fn term(&self, _j: usize) -> (*const E, f32) {
        (self.0, self.1)
    }
}

pub(super) struct Weighted<'a, E> {
    pub table: Mat<E>,
    pub drawn: &'a [i32],
    pub weights: &'a [f32],
}

impl<E: Element> Terms<E> for Weighted<'_, E> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.drawn.len()
    }
    #[inline(always)]
    unsafe fn term(&self, j: usize) -> (*const E, f32) {
        // SAFETY: the caller's `j`; ids were checked.
        unsafe {
            let id = *self.drawn.get_unchecked(j) as usize;
            (
                self.table.ptr.add(id * self.table.stride),
                *self.weights.get_unchecked(j),
            )
        }
    }
}
