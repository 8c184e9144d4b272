//! Softmax weights for the shared passes: forward keeps a running maximum and sum per query and rescales the result when
//! the maximum grows; backward has the final normaliser.

use super::dropout_index;
use crate::attention::weigh::{Panel, RunningResult, Unweigh, Weigh};
use crate::mat::{Mat, MatMut};
use crate::rng::Dropout;
use crate::simd::tile::MR;
use crate::simd::{LANES, Simd};

/// Most keys of a tile.
const KEYS: usize = 96;

#[derive(Clone, Copy)]
pub struct SoftmaxRule {
    pub scale: f32,
    pub dropout: Dropout,
    pub heads: usize,
}

/// Forward: the normaliser is known only after the last key.
#[derive(Clone, Copy)]
pub struct OnlineSoftmax {
    pub softmax: SoftmaxRule,
    pub lse: MatMut, // [T, h], written when a query is finished
}

/// Backward: the normaliser is known.
#[derive(Clone, Copy)]
pub struct KnownSoftmax {
    pub softmax: SoftmaxRule,
    pub lse: Mat,   // [T, h]
    pub delta: Mat, // [T, h]: dO . O of a query
}

impl SoftmaxRule {
    /// Dropout factors of a row of the panel.
    ///
    /// # Safety
    /// This CPU has `V`'s instructions.
    #[inline(always)]
    unsafe fn factors<V: Simd>(&self, panel: &Panel, row: usize, to: &mut [f32; KEYS]) {
        let first = dropout_index(panel.token + row, panel.head, self.heads, panel.key);
        let visible = panel.visible(row).next_multiple_of(LANES);
        // SAFETY: by this function's contract; attention stores no decisions.
        unsafe { self.dropout.fill(V::ISA, first, &mut to[..visible]) };
    }
}

impl Weigh for OnlineSoftmax {
    /// State of a query: maximum, and sum of exponentials relative to it.
    #[inline(always)]
    unsafe fn forward<V: Simd>(&self, panel: &Panel, scores: *mut f32, so_far: &RunningResult) {
        // SAFETY: by this function's contract.
        unsafe {
            let mut keep = [1.0; KEYS];
            for row in 0..panel.rows {
                let s = scores.add(row * panel.stride);
                let visible = panel.visible(row);
                let [old, sum] = if panel.key == 0 {
                    [f32::MIN, 0.0]
                } else {
                    *so_far.state.add(row)
                };
                // Whole vectors from here on: invisible keys must not be the maximum.
                V::splat(f32::MIN).store(s.add(visible));
                let mut most = V::splat(old);
                for at in (0..visible).step_by(LANES) {
                    let x = V::load(s.add(at)).mul(V::splat(self.softmax.scale));
                    x.store(s.add(at));
                    most = most.max(x);
                }
                let most = most.lanes_max();
                let mut sums = V::zero();
                for at in (0..visible).step_by(LANES) {
                    let weight = V::load(s.add(at)).sub(V::splat(most)).exp();
                    weight.store(s.add(at));
                    sums = sums.add(V::load_upto(s.add(at), visible - at));
                }
                let shrink = V::splat(old - most).exp();
                *so_far.state.add(row) = [most, shrink.mul(V::splat(sum)).lanes_max() + sums.sum()];
                if panel.key > 0 && most > old {
                    for at in (0..so_far.width).step_by(LANES) {
                        let o = so_far.o.add(row * so_far.stride + at);
                        V::load(o).mul(shrink).store(o);
                    }
                }
                if !self.softmax.dropout.is_off() {
                    self.softmax.factors::<V>(panel, row, &mut keep);
                    for at in (0..visible).step_by(LANES) {
                        V::load(s.add(at)).mul(V::load(keep.as_ptr().add(at))).store(s.add(at));
                    }
                }
                panel.mask::<V>(row, scores);
            }
            for row in panel.rows..MR {
                panel.mask::<V>(row, scores);
            }
        }
    }

    #[inline(always)]
    unsafe fn finish(&self, token: usize, head: usize, [most, sum]: [f32; 2]) -> f32 {
        // SAFETY: by this function's contract.
        unsafe { self.lse.row(token)[head] = most + sum.ln() };
        1.0 / sum
    }
}

impl Unweigh for KnownSoftmax {
    #[inline(always)]
    unsafe fn backward<V: Simd>(&self, panel: &Panel, scores: *mut f32, grads: *mut f32, _: *mut f32, _: bool) {
        // SAFETY: by this function's contract.
        unsafe {
            let mut keep = [1.0; KEYS];
            for row in 0..panel.rows {
                let (s, g) = (scores.add(row * panel.stride), grads.add(row * panel.stride));
                let lse = V::splat(self.lse.row(panel.token + row)[panel.head]);
                let delta = V::splat(self.delta.row(panel.token + row)[panel.head]);
                if !self.softmax.dropout.is_off() {
                    self.softmax.factors::<V>(panel, row, &mut keep);
                }
                for at in (0..panel.visible(row)).step_by(LANES) {
                    let weight = V::load(s.add(at)).mul(V::splat(self.softmax.scale)).sub(lse).exp();
                    let keep = V::load(keep.as_ptr().add(at));
                    let dweight = V::load(g.add(at)).mul(keep);
                    weight.mul(keep).store(s.add(at));
                    weight
                        .mul(dweight.sub(delta))
                        .mul(V::splat(self.softmax.scale))
                        .store(g.add(at));
                }
            }
            for row in 0..MR {
                panel.mask::<V>(row, scores);
                panel.mask::<V>(row, grads);
            }
        }
    }
}
