//! One unit of work for a stream: a closure stored inline, so that enqueueing allocates nothing.

use crate::queue::Site;
use crate::refusal::Outcome;
use std::mem::{MaybeUninit, needs_drop, offset_of};

/// Room for the largest op's arguments (an update of a table by eight contributions); checked at compile time.
const PAYLOAD: usize = 1280;

type Run = unsafe fn(*const u8, &Site) -> Outcome;

/// See the module header. Filled by [`Command::work`] or [`Command::answer`], run once.
#[repr(C, align(16))]
pub struct Command {
    run: Run,
    pub name: &'static str,
    /// Runs even on a stream that has failed: it owes somebody an answer or a block of memory.
    pub always: bool,
    /// Bytes of the payload in use; only these are copied.
    used: u32,
    payload: [MaybeUninit<u8>; PAYLOAD],
}

impl Command {
    /// Nothing to do.
    pub fn idle() -> Command {
        let mut command = Command {
            run: call::<fn(&Site) -> Outcome>,
            name: "idle",
            always: false,
            used: 0,
            payload: [MaybeUninit::uninit(); PAYLOAD],
        };
        command.work("idle", |_| Ok(()));
        command
    }

    /// Work that is skipped once its stream has failed, so it may own nothing.
    pub fn work<F: FnOnce(&Site) -> Outcome + Send + 'static>(&mut self, name: &'static str, work: F) {
        const { assert!(!needs_drop::<F>(), "skipped work is forgotten, so it must own nothing") };
        self.fill(name, false, work);
    }

    /// Work that always runs and may own what it answers with.
    pub fn answer<F: FnOnce(&Site) -> Outcome + Send + 'static>(&mut self, name: &'static str, work: F) {
        self.fill(name, true, work);
    }

    fn fill<F: FnOnce(&Site) -> Outcome + Send + 'static>(&mut self, name: &'static str, always: bool, work: F) {
        const { assert!(size_of::<F>() <= PAYLOAD && align_of::<F>() <= 8) };
        self.run = call::<F>;
        self.name = name;
        self.always = always;
        self.used = size_of::<F>() as u32;
        // SAFETY: size and alignment were checked above.
        unsafe { self.payload.as_mut_ptr().cast::<F>().write(work) };
    }

    /// Moves the closure to `slot`; this command must be filled again before it is used again.
    ///
    /// # Safety
    /// `slot` is valid for writes of a whole command and nobody reads it meanwhile.
    pub unsafe fn move_to(&mut self, slot: *mut Command) {
        let bytes = offset_of!(Command, payload) + self.used as usize;
        unsafe { std::ptr::copy_nonoverlapping((self as *const Command).cast::<u8>(), slot.cast(), bytes) };
    }

    /// # Safety
    /// At most once after it was filled: the closure is moved out.
    pub unsafe fn run(command: *const Command, site: &Site) -> Outcome {
        unsafe { ((*command).run)((&raw const (*command).payload).cast(), site) }
    }
}

unsafe fn call<F: FnOnce(&Site) -> Outcome>(payload: *const u8, site: &Site) -> Outcome {
    // SAFETY: `payload` holds an `F` that nobody reads again.
    let work = unsafe { payload.cast::<F>().read() };
    work(site)
}
