//! Counts heap allocations of stream and worker threads, so that a test can prove that a steady-state step makes none.
//! Threads that serve JavaScript are exempt, as is a stream while it answers a promise.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

static COUNT: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static EXEMPT: Cell<bool> = const { Cell::new(false) };
}

pub struct Counting;

fn count() {
    // During thread teardown the flag is gone; such allocations are not part of a step.
    if EXEMPT.try_with(Cell::get) == Ok(false) {
        COUNT.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: every call goes to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: by this function's contract.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: by this function's contract.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: by this function's contract.
        unsafe { System.realloc(ptr, layout, size) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: by this function's contract.
        unsafe { System.dealloc(ptr, layout) }
    }
}

/// Allocations so far on threads that are not exempt.
pub fn counted() -> u64 {
    COUNT.load(Ordering::Relaxed)
}

/// Exempts this thread: it serves JavaScript.
pub fn exempt_this_thread() {
    EXEMPT.set(true);
}

/// Runs `work` uncounted.
pub fn exempt<T>(work: impl FnOnce() -> T) -> T {
    let before = EXEMPT.replace(true);
    let result = work();
    EXEMPT.set(before);
    result
}
