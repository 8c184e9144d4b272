//! One allocation per worker, divided into the parts that a pass needs.

use crate::ctx::Ctx;
use crate::simd::tile::NR;

/// Runs `body` with a function that returns a worker's own allocation, divided by `lay_out`.
pub fn with_scratch<S>(
    cx: &Ctx,
    lay_out: impl Fn(&mut Parts) -> S + Sync,
    body: impl FnOnce(&(dyn Fn(usize) -> S + Sync)),
) {
    let mut scratch = cx.per_worker::<f32>(Parts::count(&lay_out));
    let slots = scratch.slots();
    // SAFETY: each worker has its own slot.
    body(&|worker| lay_out(&mut Parts::at(unsafe { slots.of(worker).as_mut_ptr() })));
}

/// Hands out consecutive parts of an allocation, or counts the floats that they would take.
pub struct Parts {
    base: *mut f32,
    floats: usize,
}

impl Parts {
    pub fn at(base: *mut f32) -> Parts {
        Parts { base, floats: 0 }
    }

    /// Total floats of the parts taken by `lay_out`.
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
