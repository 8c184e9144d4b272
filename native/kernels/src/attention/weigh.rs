//! Maps scores to weights: the only place where HSTU, FuXi and softmax attention differ inside a tile.

use super::bias::BlockPair;
use super::plan::BLOCK;
use super::tile::Slope;
use crate::simd::tile::MR;
use crate::simd::{Elements, LANES, LINE, Simd};
use std::ops::Range;

/// A strip of queries against a tile of keys, one head.
#[derive(Clone, Copy)]
pub struct Strip {
    /// Batch row of the first query.
    token: usize,
    head: usize,
    /// Position of the first query in its sequence.
    pub query: usize,
    queries: usize,
    /// Position of the tile's first key.
    pub key: usize,
    /// Keys of the tile visible to six queries.
    pub seen: Slope,
    /// Row stride of scores, in floats.
    stride: usize,
}

impl Strip {
    /// Queries of a block pair against its keys from `tile` on, `most` of them; `stride` floats from row to row.
    #[inline(always)]
    pub fn new(
        pair: &BlockPair,
        head: usize,
        queries: &Range<usize>,
        tile: usize,
        most: usize,
        stride: usize,
    ) -> Strip {
        let (query, key) = (pair.query + queries.start, pair.key + tile);
        Strip {
            token: pair.token + query,
            head,
            query,
            queries: queries.len(),
            key,
            seen: Slope::seen(query, key, most.min(pair.keys - tile)),
            stride,
        }
    }

    /// Rows of scores: whole sixes.
    #[inline(always)]
    pub fn rows(&self) -> usize {
        self.queries.next_multiple_of(MR)
    }

    /// The six queries from `row` on.
    #[inline(always)]
    pub fn panel(&self, row: usize) -> Panel {
        Panel {
            token: self.token + row,
            head: self.head,
            query: self.query + row,
            rows: MR.min(self.queries - row),
            key: self.key,
            keys: self.seen.at(row),
            stride: self.stride,
        }
    }
}

/// Six queries against the keys of one tile, one head.
#[derive(Clone, Copy)]
pub struct Panel {
    /// Batch row of the first query.
    pub token: usize,
    pub head: usize,
    /// Position of the first query in its sequence.
    pub query: usize,
    /// Number of queries: six, except at the end of a block.
    pub rows: usize,
    /// Position of the tile's first key.
    pub key: usize,
    /// Keys of the tile visible to a sixth query.
    pub keys: usize,
    /// Row stride of scores in floats; rows are padded by a vector.
    pub stride: usize,
}

impl Panel {
    /// Keys of the tile visible to query `row`; 0 if there is no such query.
    #[inline(always)]
    pub fn visible(&self, row: usize) -> usize {
        if row < self.rows {
            (self.query + row + 1).saturating_sub(self.key).min(self.keys)
        } else {
            0
        }
    }

    /// Zeroes the invisible keys of `row`, up to the keys of the panel.
    ///
    /// # Safety
    /// This CPU has `V`'s instructions; `weights` has six rows of the panel, with slack for a vector.
    #[inline(always)]
    pub unsafe fn mask<V: Simd>(&self, row: usize, weights: *mut f32) {
        for at in (self.visible(row)..self.keys).step_by(LANES) {
            // SAFETY: by this function's contract.
            unsafe { V::zero().store(weights.add(row * self.stride + at)) };
        }
    }
}

/// Forward: the running result of a panel, for weights that are known only up to a factor.
#[derive(Clone, Copy)]
pub struct RunningResult {
    /// The panel's sums so far, `stride` floats apart, `width` wide (a multiple of 8).
    pub o: *mut f32,
    pub stride: usize,
    pub width: usize,
    /// Two floats per query, with an op-specific meaning.
    pub state: *mut [f32; 2],
}

/// Converts scores to weights.
pub trait Weigh: Copy + Send + Sync {
    /// Scores to weights, in place, zero where a key is not visible.
    ///
    /// # Safety
    /// This CPU has `V`'s instructions; `scores` has six rows of the panel, with slack for a vector; `so_far` points to the panel's
    /// own sums and state.
    unsafe fn forward<V: Simd>(&self, panel: &Panel, scores: *mut f32, so_far: &RunningResult);

    /// The factor of a finished row of results.
    ///
    /// # Safety
    /// What the implementation writes per query is alive, and this task owns the query's row of it.
    unsafe fn finish(&self, token: usize, head: usize, state: [f32; 2]) -> f32;
}

/// Converts gradients of weights to gradients of scores.
pub trait Unweigh: Copy + Send + Sync {
    /// Scores to weights and gradients of weights to gradients of scores, in place. `total`, unless null, receives the
    /// latter too (rows [`BLOCK`] apart): added, or overwriting if `fresh`.
    ///
    /// # Safety
    /// This CPU has `V`'s instructions; `scores` and `grads` have six rows of the panel, with slack for a vector; so has `total`,
    /// unless null.
    unsafe fn backward<V: Simd>(&self, panel: &Panel, scores: *mut f32, grads: *mut f32, total: *mut f32, fresh: bool);
}

/// Queries of a panel that are computed together: with rows of two registers, six independent dependency chains.
const TOGETHER: usize = MR / 2;

/// The lines of `keys` keys, rounded up, and for each the first of every [`TOGETHER`] queries.
#[inline(always)]
fn lines(keys: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..keys)
        .step_by(LINE)
        .flat_map(|at| (0..MR).step_by(TOGETHER).map(move |first| (at, first)))
}

/// SiLU(S) / n. The division by n is done in [`Weigh::finish`], and in backward while dO is packed. Whole lines are computed,
/// visible keys or not.
#[derive(Clone, Copy)]
pub struct Silu {
    pub n: usize,
}

impl Weigh for Silu {
    #[inline(always)]
    unsafe fn forward<V: Simd>(&self, panel: &Panel, scores: *mut f32, _: &RunningResult) {
        // SAFETY: by this function's contract.
        unsafe {
            for (at, first) in lines(panel.keys) {
                let scores = scores.add(first * panel.stride + at);
                let mut x = [V::Line::zero(); TOGETHER];
                for (row, x) in x.iter_mut().enumerate() {
                    *x = V::Line::load(scores.add(row * panel.stride));
                }
                for (row, weight) in V::Line::silus(x).into_iter().enumerate() {
                    weight.store(scores.add(row * panel.stride));
                }
            }
            for row in 0..MR {
                panel.mask::<V>(row, scores);
            }
        }
    }

    #[inline(always)]
    unsafe fn finish(&self, _: usize, _: usize, _: [f32; 2]) -> f32 {
        1.0 / self.n as f32
    }
}

impl Unweigh for Silu {
    #[inline(always)]
    unsafe fn backward<V: Simd>(&self, panel: &Panel, scores: *mut f32, grads: *mut f32, total: *mut f32, fresh: bool) {
        // SAFETY: by this function's contract.
        unsafe {
            for (at, first) in lines(panel.keys) {
                let (scores, grads) = (
                    scores.add(first * panel.stride + at),
                    grads.add(first * panel.stride + at),
                );
                let mut x = [V::Line::zero(); TOGETHER];
                for (row, x) in x.iter_mut().enumerate() {
                    *x = V::Line::load(scores.add(row * panel.stride));
                }
                for (row, sigmoid) in V::Line::sigmoids(x).into_iter().enumerate() {
                    let weight = x[row].mul(sigmoid);
                    let slope = weight.fma(V::Line::constant(1.0).sub(sigmoid), sigmoid);
                    let grad = grads.add(row * panel.stride);
                    let ds = V::Line::load(grad).mul(slope);
                    weight.store(scores.add(row * panel.stride));
                    ds.store(grad);
                    if !total.is_null() {
                        let sum = total.add((first + row) * BLOCK + at);
                        if fresh {
                            ds.store(sum)
                        } else {
                            ds.add(V::Line::load(sum)).store(sum)
                        }
                    }
                }
            }
            for row in 0..MR {
                panel.mask::<V>(row, scores);
                panel.mask::<V>(row, grads);
            }
        }
    }
}
