//! Memory for tensors and scratch: 64-byte aligned blocks from free lists by size class, reused indefinitely. After the first
//! steps of a run no block is allocated from the system any more; `system_allocations` proves it.

use std::alloc::{Layout, alloc, dealloc};
use std::ops::{Deref, DerefMut};
use std::panic::resume_unwind;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const LINE: usize = 64;
const HUGE_PAGE: usize = 2 << 20;
/// Eight classes per power of two: at most 12.5 % of a block is unused.
const STEPS: usize = 8;
const SMALLEST: usize = 256;
const CLASSES: usize = 40 * STEPS;
/// More than any machine has; sizes up to here have a class.
const LARGEST: usize = 1 << 46;

/// The system refused memory: the panic payload of [`Arena::take`].
#[derive(Debug)]
pub struct OutOfMemory {
    pub bytes: usize,
}

/// A block of `bytes` bytes; it leaks unless returned with [`Arena::give`].
#[derive(Debug)]
pub struct Block {
    ptr: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a block is plain memory with one owner; sharing the owner shares an address, not access.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    pub fn ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// See the module header. One per runtime; shared by reference.
pub struct Arena {
    free: Vec<Mutex<Vec<Block>>>,
    allocations: AtomicU64,
    reserved: AtomicUsize,
    live: AtomicUsize,
}

impl Default for Arena {
    fn default() -> Self {
        Self::new()
    }
}

impl Arena {
    pub fn new() -> Arena {
        let free = (0..CLASSES).map(|_| Mutex::new(Vec::with_capacity(16))).collect();
        Arena {
            free,
            allocations: AtomicU64::new(0),
            reserved: AtomicUsize::new(0),
            live: AtomicUsize::new(0),
        }
    }

    /// A block of at least `bytes` bytes with unspecified contents; `None` if the system has no more memory.
    pub fn try_take(&self, bytes: usize) -> Option<Block> {
        if bytes > LARGEST {
            return None;
        }
        let (class, size) = class_of(bytes);
        let free = self.free[class].lock().expect("arena").pop();
        let block = match free {
            Some(block) => block,
            None => {
                let block = system_block(size)?;
                self.allocations.fetch_add(1, Ordering::Relaxed);
                self.reserved.fetch_add(size, Ordering::Relaxed);
                block
            }
        };
        self.live.fetch_add(size, Ordering::Relaxed);
        Some(block)
    }

    /// Like [`Arena::try_take`], but unwinds with [`OutOfMemory`]: kernels cannot handle it, so their caller catches it.
    pub fn take(&self, bytes: usize) -> Block {
        self.try_take(bytes)
            .unwrap_or_else(|| resume_unwind(Box::new(OutOfMemory { bytes })))
    }

    /// Returns a block for reuse.
    pub fn give(&self, block: Block) {
        self.live.fetch_sub(block.bytes, Ordering::Relaxed);
        let (class, _) = class_of(block.bytes);
        self.free[class].lock().expect("arena").push(block);
    }

    /// `len` elements of scratch that return to the arena when dropped. Contents are unspecified.
    pub fn lease<T: Pod>(&self, len: usize) -> Lease<'_, T> {
        Lease {
            block: Some(self.take(len.saturating_mul(size_of::<T>()))),
            len,
            arena: self,
            kind: std::marker::PhantomData,
        }
    }

    /// Number of system allocations.
    pub fn system_allocations(&self) -> u64 {
        self.allocations.load(Ordering::Relaxed)
    }
    /// Bytes allocated from the system.
    pub fn reserved_bytes(&self) -> usize {
        self.reserved.load(Ordering::Relaxed)
    }
    /// Bytes of blocks handed out now.
    pub fn live_bytes(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        for list in &self.free {
            for block in list.lock().expect("arena").drain(..) {
                // SAFETY: the block came from `system_block` with this layout and nobody holds it.
                unsafe { dealloc(block.ptr.as_ptr(), layout(block.bytes)) };
            }
        }
    }
}

/// Size of the block that [`Arena::take`] returns for `bytes` bytes.
pub fn block_size(bytes: usize) -> usize {
    class_of(bytes).1
}

fn class_of(bytes: usize) -> (usize, usize) {
    let bytes = bytes.max(SMALLEST);
    let exp = (usize::BITS - 1 - (bytes - 1).leading_zeros()) as usize; // 2^exp <= bytes - 1
    let base = 1usize << exp;
    let step = (base / STEPS).max(LINE);
    let size = base + (bytes - base).div_ceil(step) * step;
    ((exp - 7) * STEPS + (size - base) * STEPS / base, size)
}

fn layout(size: usize) -> Layout {
    let align = if size >= HUGE_PAGE { HUGE_PAGE } else { LINE };
    Layout::from_size_align(size, align).expect("block size")
}

fn system_block(size: usize) -> Option<Block> {
    let layout = layout(size);
    // SAFETY: size is at least SMALLEST, never zero.
    let raw = unsafe { alloc(layout) };
    let ptr = NonNull::new(raw)?;
    #[cfg(target_os = "linux")]
    if size >= HUGE_PAGE {
        // SAFETY: the range is ours and huge-page aligned; advice cannot change its contents.
        unsafe { libc::madvise(raw.cast(), size, libc::MADV_HUGEPAGE) };
    }
    Some(Block { ptr, bytes: size })
}

/// Plain numbers: any bit pattern is a value.
///
/// # Safety
/// Implement only for such types.
pub unsafe trait Pod: Copy + Send + Sync + 'static {}
macro_rules! plain_numbers {
    ($($number:ty),*) => { $(
        // SAFETY: every bit pattern of a number is a value.
        unsafe impl Pod for $number {}
    )* };
}
plain_numbers!(f32, f64, u8, u16, u32, i32, u64, i64, usize);

/// Scratch of `T`s, see [`Arena::lease`].
pub struct Lease<'a, T: Pod> {
    block: Option<Block>,
    len: usize,
    arena: &'a Arena,
    kind: std::marker::PhantomData<T>,
}

impl<T: Pod> Deref for Lease<'_, T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        let block = self.block.as_ref().expect("held until drop");
        // SAFETY: the block holds `len` elements, is aligned to 64 bytes, and any bits are a `T`.
        unsafe { std::slice::from_raw_parts(block.ptr().cast(), self.len) }
    }
}

impl<T: Pod> DerefMut for Lease<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        let block = self.block.as_ref().expect("held until drop");
        // SAFETY: as in `deref`; the lease is the block's only owner.
        unsafe { std::slice::from_raw_parts_mut(block.ptr().cast(), self.len) }
    }
}

impl<T: Pod> Drop for Lease<'_, T> {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            self.arena.give(block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_cover_sizes_with_little_slack() {
        let mut last = 0;
        for bytes in (1..200_000).chain([HUGE_PAGE - 1, HUGE_PAGE, HUGE_PAGE + 1, 20 << 30]) {
            let (class, size) = class_of(bytes);
            assert!(size >= bytes && class < CLASSES && class >= last);
            assert_eq!(class_of(size), (class, size), "a block's own size must name its class");
            assert!(size <= SMALLEST || size - bytes <= (bytes / STEPS).max(LINE));
            last = class;
        }
    }

    #[test]
    fn a_second_round_asks_the_system_for_nothing() {
        let arena = Arena::new();
        for _ in 0..3 {
            let _a = arena.lease::<f32>(1000);
            let _b = arena.lease::<f32>(1 << 20);
        }
        assert_eq!(arena.system_allocations(), 2);
        assert_eq!(arena.live_bytes(), 0);
    }

    #[test]
    fn memory_that_the_system_refuses_is_no_abort() {
        let arena = Arena::new();
        assert!(arena.try_take(LARGEST).is_none() && arena.try_take(usize::MAX).is_none());
        let scratch = std::panic::catch_unwind(|| arena.lease::<f64>(usize::MAX / 2).len());
        assert!(scratch.unwrap_err().is::<OutOfMemory>());
        assert_eq!((arena.live_bytes(), arena.reserved_bytes()), (0, 0));
        assert_eq!(arena.lease::<f32>(10).len(), 10);
    }
}
