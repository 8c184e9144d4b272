//! The clock for timings.

use turbogr_kernels::Ctx;

/// Current time in seconds. A single thread is timed by its CPU time, which other processes do not affect.
pub fn clock(cx: &Ctx) -> f64 {
    let id = if cx.pool.threads() == 1 {
        libc::CLOCK_THREAD_CPUTIME_ID
    } else {
        libc::CLOCK_MONOTONIC
    };
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec.
    unsafe { libc::clock_gettime(id, &mut now) };
    now.tv_sec as f64 + 1e-9 * now.tv_nsec as f64
}
