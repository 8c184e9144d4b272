//! A memory-mapped file as an ArrayBuffer: pages come from the page cache on first access.
//!
//! Accessing a page beyond the end of a file that has shrunk raises SIGBUS, which would end the process. A handler maps a page
//! of zeros there and marks the mapping as torn; from then on every upload is refused with the file's name, so no zeros reach
//! a model. Reading files instead would cost a system call per sequence.

use crate::fault::{Outcome, fault};
use memmap2::{MmapMut, MmapOptions};
use napi::Env;
use napi::bindgen_prelude::ArrayBuffer;

/// Maps the whole file. Private pages: a write from JavaScript changes a copy, never the file.
pub fn map_file<'env>(env: &'env Env, path: &str) -> Outcome<ArrayBuffer<'env>> {
    let refuse = |got: String| fault("file", "map_file", path, "a readable file", got);
    let file = std::fs::File::open(path).map_err(|error| refuse(error.to_string()))?;
    let bytes = file.metadata().map_err(|error| refuse(error.to_string()))?.len() as usize;
    if bytes == 0 {
        return ArrayBuffer::copy_from(env, []).map_err(|error| refuse(error.reason.clone()));
    }
    // SAFETY: copy-on-write pages: changes of the file may show, which is why stores and checkpoints are replaced by
    // renaming; that it shrinks is handled by `torn`.
    let map =
        unsafe { MmapOptions::new().no_reserve_swap().map_copy(&file) }.map_err(|error| refuse(error.to_string()))?;
    let mut kept = torn::watch(map, path);
    let start = kept.map.as_mut_ptr();
    // SAFETY: the finaliser owns the mapping, so its `bytes` bytes live as long as the buffer.
    let buffer = unsafe { ArrayBuffer::from_external(env, start, bytes, kept, |_, kept| drop(kept)) };
    buffer.map_err(|error| refuse(error.reason.clone()))
}

/// Fails if a mapped file has shrunk.
pub fn check_maps(op: &str) -> Outcome {
    match torn::first() {
        None => Ok(()),
        Some(path) => Err(fault(
            "file",
            op,
            &path,
            "a file that keeps its size while it is mapped",
            "one that shrank",
        )),
    }
}

/// A mapping registered with the handler; unregistered on drop.
struct Watched {
    map: MmapMut,
    slot: Option<usize>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        torn::forget(self.slot);
    }
}

#[cfg(unix)]
mod torn {
    use super::Watched;
    use memmap2::MmapMut;
    use std::mem::MaybeUninit;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::{Mutex, Once};

    /// Maximum registered mappings; further ones of a larger store are not watched.
    const SLOTS: usize = 1024;

    struct Slot {
        start: AtomicUsize,
        /// 0 while the slot is free.
        end: AtomicUsize,
        torn: AtomicBool,
    }

    static MAPPINGS: [Slot; SLOTS] = [const {
        Slot {
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            torn: AtomicBool::new(false),
        }
    }; SLOTS];
    static ANY: AtomicBool = AtomicBool::new(false);
    static PATHS: Mutex<Vec<(usize, String)>> = Mutex::new(Vec::new());
    static PAGE: AtomicUsize = AtomicUsize::new(4096);
    static INSTALL: Once = Once::new();
    static mut EARLIER: MaybeUninit<libc::sigaction> = MaybeUninit::uninit();

    pub fn watch(map: MmapMut, path: &str) -> Watched {
        INSTALL.call_once(install);
        let mut paths = PATHS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let slot = MAPPINGS.iter().position(|slot| slot.end.load(Ordering::Relaxed) == 0);
        if let Some(at) = slot {
            let start = map.as_ptr().addr();
            MAPPINGS[at].start.store(start, Ordering::Relaxed);
            MAPPINGS[at].end.store(start + map.len(), Ordering::Release);
            paths.push((at, path.into()));
        }
        Watched { map, slot }
    }

    pub fn forget(slot: Option<usize>) {
        let Some(at) = slot else { return };
        let mut paths = PATHS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        paths.retain(|(slot, _)| *slot != at);
        MAPPINGS[at].torn.store(false, Ordering::Relaxed);
        MAPPINGS[at].end.store(0, Ordering::Release);
        let any = MAPPINGS.iter().any(|slot| slot.torn.load(Ordering::Relaxed));
        ANY.store(any, Ordering::Relaxed);
    }

    /// Path of a torn file.
    pub fn first() -> Option<String> {
        if !ANY.load(Ordering::Relaxed) {
            return None;
        }
        let paths = PATHS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let torn = paths.iter().find(|(at, _)| MAPPINGS[*at].torn.load(Ordering::Relaxed));
        torn.map(|(_, path)| path.clone())
    }

    fn install() {
        // SAFETY: plain system calls; `EARLIER` is written once, before the handler can run.
        unsafe {
            PAGE.store(libc::sysconf(libc::_SC_PAGESIZE) as usize, Ordering::Relaxed);
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handle as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
            libc::sigaction(libc::SIGBUS, &action, (&raw mut EARLIER).cast());
        }
    }

    /// # Safety
    /// Called by the system with the signal's own information. Only atomics and system calls: a signal may come anywhere.
    unsafe extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
        // SAFETY: `info` is valid for SIGBUS and holds an address.
        let address = unsafe { (*info).si_addr() }.addr();
        let within = |slot: &&Slot| {
            let end = slot.end.load(Ordering::Acquire);
            (slot.start.load(Ordering::Relaxed)..end).contains(&address)
        };
        let page = PAGE.load(Ordering::Relaxed);
        if let Some(slot) = MAPPINGS.iter().find(within) {
            let at = (address / page * page) as *mut libc::c_void;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            // SAFETY: replaces one page of a mapping that is ours.
            let zeros = unsafe { libc::mmap(at, page, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
            if zeros != libc::MAP_FAILED {
                slot.torn.store(true, Ordering::Relaxed);
                ANY.store(true, Ordering::Relaxed);
                return;
            }
        }
        // SAFETY: not ours: calls the previous handler, or the default action when the access is repeated.
        unsafe {
            let earlier = (&raw const EARLIER).cast::<libc::sigaction>().read();
            match earlier.sa_sigaction {
                libc::SIG_DFL | libc::SIG_IGN => {
                    libc::signal(signal, libc::SIG_DFL);
                }
                address if earlier.sa_flags & libc::SA_SIGINFO != 0 => {
                    type Handler = unsafe extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
                    std::mem::transmute::<usize, Handler>(address)(signal, info, context);
                }
                address => std::mem::transmute::<usize, unsafe extern "C" fn(libc::c_int)>(address)(signal),
            }
        }
    }
}

/// Windows refuses to shrink a file that is mapped.
#[cfg(not(unix))]
mod torn {
    use super::Watched;
    use memmap2::MmapMut;

    pub fn watch(map: MmapMut, _path: &str) -> Watched {
        Watched { map, slot: None }
    }
    pub fn forget(_slot: Option<usize>) {}
    pub fn first() -> Option<String> {
        None
    }
}
