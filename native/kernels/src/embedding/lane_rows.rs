//! A row's gradient per lane, summed in the order of the lane tree (`train/lane-tree.ts`): one binary tree over lane numbers,
//! skipping absent lanes. So the sums of two consecutive lanes that have the row are combined at the highest bit in which their
//! numbers differ.

use super::contribution::MAX_CONTRIBUTIONS;
use crate::simd::{LANES, Simd};

pub(super) struct LaneRows<'a> {
    /// A padded row per lane; the first `count` are sums that are not combined yet, in lane order.
    rows: &'a mut [f32],
    width: usize,
    count: usize,
    /// The bit at which each is combined with the next, descending.
    meets: [u32; MAX_CONTRIBUTIONS],
    /// The last lane so far.
    last: u32,
}

impl<'a> LaneRows<'a> {
    pub fn new(rows: &'a mut [f32], width: usize) -> LaneRows<'a> {
        LaneRows {
            rows,
            width,
            count: 0,
            meets: [0; MAX_CONTRIBUTIONS],
            last: 0,
        }
    }

    /// Starts the next lane with a zero row; lanes ascend.
    ///
    /// # Safety
    /// Target features as for [`Simd`].
    #[inline(always)]
    pub unsafe fn next<V: Simd>(&mut self, lane: u32) {
        if self.count > 0 {
            let meets = (self.last ^ lane).ilog2();
            while self.count > 1 && self.meets[self.count - 2] < meets {
                // SAFETY: guaranteed by the caller.
                unsafe { self.meet::<V>() };
            }
            self.meets[self.count - 1] = meets;
        }
        self.last = lane;
        self.count += 1;
        self.row().fill(0.0);
    }

    /// The lane's row.
    #[inline(always)]
    pub fn row(&mut self) -> &mut [f32] {
        &mut self.rows[(self.count - 1) * self.width..self.count * self.width]
    }

    /// The sum over all lanes since the last total; at least one.
    ///
    /// # Safety
    /// Target features as for [`Simd`].
    #[inline(always)]
    pub unsafe fn total<V: Simd>(&mut self) -> &mut [f32] {
        while self.count > 1 {
            // SAFETY: guaranteed by the caller.
            unsafe { self.meet::<V>() };
        }
        self.count = 0;
        &mut self.rows[..self.width]
    }

    /// Combines the last two sums.
    ///
    /// # Safety
    /// Target features as for [`Simd`].
    #[inline(always)]
    unsafe fn meet<V: Simd>(&mut self) {
        self.count -= 1;
        let (left, right) = self.rows[(self.count - 1) * self.width..].split_at_mut(self.width);
        for k in (0..self.width).step_by(LANES) {
            // SAFETY: rows are whole vectors, and there are two.
            unsafe {
                let sum = left.as_mut_ptr().add(k);
                V::load(sum).add(V::load(right.as_ptr().add(k))).store(sum);
            }
        }
    }
}
