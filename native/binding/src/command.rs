//! One unit of work for a stream: a closure stored inline, so that enqueueing allocates nothing.

use crate::queue::Site;
use crate::refusal::Outcome;
use std::mem::{MaybeUninit, needs_drop};

/// Room for the largest op's arguments (an update of a table by eight contributions); checked at compile time.
const PAYLOAD: usize = 1280;

#[repr(align(16))]
struct Payload([MaybeUninit<u8>; PAYLOAD]);

/// See the module header. Made by [`Command::work`] or [`Command::answer`], consumed by [`Command::run`].
pub struct Command {
    payload: Payload,
    run: unsafe fn(*const u8, &Site) -> Outcome,
    pub name: &'static str,
    /// Runs even on a stream that has failed: it owes somebody an answer or a block of memory.
    pub always: bool,
}

impl Command {
    /// Work that is skipped once its stream has failed, so it may own nothing.
    pub fn work<F: FnOnce(&Site) -> Outcome + Send + 'static>(name: &'static str, work: F) -> Command {
        const { assert!(!needs_drop::<F>(), "skipped work is forgotten, so it must own nothing") };
        Command::new(name, false, work)
    }

    /// Work that always runs and may own what it answers with.
    pub fn answer<F: FnOnce(&Site) -> Outcome + Send + 'static>(name: &'static str, work: F) -> Command {
        Command::new(name, true, work)
    }

    fn new<F: FnOnce(&Site) -> Outcome + Send + 'static>(name: &'static str, always: bool, work: F) -> Command {
        const { assert!(size_of::<F>() <= PAYLOAD && align_of::<F>() <= 16) };
        unsafe fn call<F: FnOnce(&Site) -> Outcome>(payload: *const u8, site: &Site) -> Outcome {
            // SAFETY: `payload` holds an `F` that nobody reads again.
            let work = unsafe { payload.cast::<F>().read() };
            work(site)
        }
        let mut payload = Payload([MaybeUninit::uninit(); PAYLOAD]);
        // SAFETY: size and alignment were checked above.
        unsafe { payload.0.as_mut_ptr().cast::<F>().write(work) };
        Command {
            payload,
            run: call::<F>,
            name,
            always,
        }
    }

    /// # Safety
    /// At most once: the closure is moved out.
    pub unsafe fn run(&self, site: &Site) -> Outcome {
        unsafe { (self.run)(self.payload.0.as_ptr().cast(), site) }
    }
}
