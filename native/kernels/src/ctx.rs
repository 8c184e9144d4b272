//! The context of every kernel: threads, scratch memory and the instruction set.

use crate::arena::{Arena, Lease, Pod};
use crate::isa::Isa;
use crate::mat::Disjoint;
use crate::pool::Pool;
use std::sync::Arc;

/// Kernels are stateless: everything they need is in here.
pub struct Ctx {
    pub pool: Pool,
    pub arena: Arc<Arena>,
    pub isa: Isa,
}

impl Ctx {
    pub fn new(threads: usize) -> Ctx {
        Ctx::with(threads, Isa::detect(), Arc::new(Arena::new()))
    }

    pub fn with(threads: usize, isa: Isa, arena: Arc<Arena>) -> Ctx {
        Ctx {
            pool: Pool::new(threads),
            arena,
            isa,
        }
    }

    /// Scratch for the whole kernel; contents unspecified.
    pub fn scratch<T: Pod>(&self, len: usize) -> Lease<'_, T> {
        self.arena.lease(len)
    }

    /// `len` elements of scratch for each worker, handed out by worker index.
    pub fn per_worker<T: Pod>(&self, len: usize) -> PerWorker<'_, T> {
        let stride = len.next_multiple_of(64 / size_of::<T>());
        PerWorker {
            lease: self.arena.lease(stride * self.pool.threads()),
            stride,
            len,
        }
    }
}

/// See [`Ctx::per_worker`]. Results must never depend on *which* worker ran a task: scratch only.
pub struct PerWorker<'a, T: Pod> {
    lease: Lease<'a, T>,
    stride: usize,
    len: usize,
}

impl<T: Pod> PerWorker<'_, T> {
    /// The accessor to move into the parallel closure.
    pub fn slots(&mut self) -> Slots<'_, T> {
        Slots {
            all: Disjoint::new(&mut self.lease),
            stride: self.stride,
            len: self.len,
        }
    }
}

/// Hands each worker its own slot.
#[derive(Clone, Copy)]
pub struct Slots<'a, T> {
    all: Disjoint<'a, T>,
    stride: usize,
    len: usize,
}

impl<'a, T> Slots<'a, T> {
    /// # Safety
    /// `worker` is the index the pool gave to the running task, and the slot is taken once at a time.
    pub unsafe fn of(&self, worker: usize) -> &'a mut [T] {
        // SAFETY: by this function's contract.
        unsafe { self.all.range(worker * self.stride, self.len) }
    }
}
