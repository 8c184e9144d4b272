//! One allocation per worker, divided into the parts that a pass needs.

use crate::simd::tile::NR;

/// Hands out consecutive parts of an allocation, or counts the floats that they would take.
pub struct Parts {
    base: *mut f32,
    floats: usize,
}

impl Parts {
    pub fn at(base: *mut f32) -> Parts {
        Parts { base, floats: 0 }
    }

    /// Floats that the parts taken by `lay_out` need together.
    pub fn count<S>(lay_out: impl FnOnce(&mut Parts) -> S) -> usize {
        let mut parts = Parts::at(std::ptr::null_mut());
        lay_out(&mut parts);
        parts.floats
    }

    /// The next `len` floats; parts begin at multiples of a panel's width.
    pub fn take(&mut self, len: usize) -> *mut f32 {
        let part = self.base.wrapping_add(self.floats);
        self.floats += len.next_multiple_of(NR);
        part
    }
}
