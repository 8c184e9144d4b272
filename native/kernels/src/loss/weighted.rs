//! A weighted sum of drawn rows: the gradient of a user vector.

use crate::gathered::Terms;
use crate::mat::Mat;
use crate::rows::Element;

/// Rows of `table` and their weights. While they are summed, the rows of `next` are prefetched.
pub(super) struct Weighted<'a, E> {
    pub table: Mat<E>,
    pub at: &'a [i32],
    pub weights: &'a [f32],
    pub next: Option<&'a [i32]>,
}

impl<E: Element> Terms<E> for Weighted<'_, E> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.at.len()
    }
    #[inline(always)]
    unsafe fn term(&self, j: usize) -> (*const E, f32) {
        // SAFETY: by this function's contract.
        unsafe {
            let id = *self.at.get_unchecked(j) as usize;
            (
                self.table.ptr.add(id * self.table.stride),
                *self.weights.get_unchecked(j),
            )
        }
    }
    #[inline(always)]
    unsafe fn upcoming(&self, j: usize) -> Option<*const E> {
        let id = *self.next?.get(j)?;
        Some(self.table.ptr.wrapping_add(id.max(0) as usize * self.table.stride))
    }
}
