//! One unit of work for a stream: a closure stored inline with its operands, so that enqueueing allocates nothing.

use crate::failures::Use;
use crate::fault::Outcome;
use crate::operands::{MOST_OPERANDS, Operands};
use crate::queue::Site;
use crate::spans::Tag;
use crate::tensors::Marks;
use std::mem::{MaybeUninit, needs_drop, offset_of};

/// Room for the largest op's arguments (an update of a table by all contributions it takes); checked at compile time.
const CLOSURE: usize = 3328;
const PAYLOAD: usize = CLOSURE + MOST_OPERANDS * size_of::<Use>();

type Run = unsafe fn(*const u8, &Site) -> Outcome;

/// See the module header. Filled by [`Command::work`] or [`Command::answer`], run once.
#[repr(C, align(16))]
pub struct Command {
    run: Run,
    pub name: &'static str,
    /// Commands of other streams to wait for; 0 for none.
    pub after: Marks,
    pub tag: Tag,
    /// Runs even if an operand is spoiled: a promise or a memory block depends on it.
    pub always: bool,
    /// Number of operands; they follow the closure.
    operands: u16,
    /// Bytes of the closure.
    closure: u32,
    payload: [MaybeUninit<u8>; PAYLOAD],
}

impl Command {
    /// Nothing to do.
    pub fn idle() -> Command {
        let mut command = Command {
            run: call::<fn(&Site) -> Outcome>,
            name: "idle",
            after: Marks::default(),
            tag: Tag::NONE,
            always: false,
            operands: 0,
            closure: 0,
            payload: [MaybeUninit::uninit(); PAYLOAD],
        };
        command.work("idle", |_| Ok(()));
        command
    }

    /// Work that is skipped if an operand is spoiled, so it must not own anything.
    pub fn work<F: FnOnce(&Site) -> Outcome + Send + 'static>(&mut self, name: &'static str, work: F) {
        const { assert!(!needs_drop::<F>(), "skipped work is forgotten, so it must own nothing") };
        self.fill(name, false, work);
    }

    /// Work that always runs and may own resources.
    pub fn answer<F: FnOnce(&Site) -> Outcome + Send + 'static>(&mut self, name: &'static str, work: F) {
        self.fill(name, true, work);
    }

    fn fill<F: FnOnce(&Site) -> Outcome + Send + 'static>(&mut self, name: &'static str, always: bool, work: F) {
        const { assert!(size_of::<F>() <= CLOSURE && align_of::<F>() <= 8) };
        self.run = call::<F>;
        self.name = name;
        self.always = always;
        self.operands = 0;
        self.closure = size_of::<F>().next_multiple_of(align_of::<Use>()) as u32;
        // SAFETY: size and alignment were checked above.
        unsafe { self.payload.as_mut_ptr().cast::<F>().write(work) };
    }

    /// Adds the operands; call after storing the closure.
    pub fn use_operands(&mut self, operands: &Operands) {
        let first = self.uses_ptr().cast_mut();
        let mut count = 0;
        for of in operands.iter().take(MOST_OPERANDS) {
            // SAFETY: the payload has room for MOST_OPERANDS behind the largest closure, at this alignment.
            unsafe { first.add(count).write(Use::new(of.life, of.storage, of.written)) };
            count += 1;
        }
        self.operands = count as u16;
    }

    pub fn uses(&self) -> &[Use] {
        // SAFETY: `use_operands` wrote this many; `fill` and `move_to` keep count and contents together.
        unsafe { std::slice::from_raw_parts(self.uses_ptr(), self.operands as usize) }
    }

    fn uses_ptr(&self) -> *const Use {
        self.payload.as_ptr().wrapping_add(self.closure as usize).cast()
    }

    /// Moves the closure to `slot`; this command must be refilled before reuse.
    ///
    /// # Safety
    /// `slot` is valid for writes of a whole command and nobody reads it meanwhile.
    pub unsafe fn move_to(&mut self, slot: *mut Command) {
        let used = self.closure as usize + self.operands as usize * size_of::<Use>();
        let bytes = offset_of!(Command, payload) + used;
        // SAFETY: `bytes` are a prefix of a command on both sides.
        unsafe { std::ptr::copy_nonoverlapping((self as *const Command).cast::<u8>(), slot.cast(), bytes) };
    }

    /// # Safety
    /// At most once after it was filled: the closure is moved out.
    pub unsafe fn run(&self, site: &Site) -> Outcome {
        // SAFETY: `run` was made for the closure that the payload holds.
        unsafe { (self.run)(self.payload.as_ptr().cast(), site) }
    }
}

/// # Safety
/// `payload` holds an `F` that nobody reads again.
unsafe fn call<F: FnOnce(&Site) -> Outcome>(payload: *const u8, site: &Site) -> Outcome {
    // SAFETY: guaranteed by the caller.
    let work = unsafe { payload.cast::<F>().read() };
    work(site)
}
