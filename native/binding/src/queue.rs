//! An ordered stream: a preallocated ring of commands, filled by the JavaScript thread and emptied by the stream's own.
//!
//! Command number `k` (from 1) is done when `done >= k`. That one counter is the ring's read position, the clock that
//! events wait for, and what tells the memory cache that a block is no longer in use.
//!
//! A failure sticks: later commands are skipped until a sync has reported it. A wait for a failed stream fails too.

use crate::command::Command;
use crate::refusal::{Outcome, Refusal, panicked, refusal};
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use turbogr_kernels::Ctx;

/// `compute`, `sparse`, `comm`.
pub const STREAMS: usize = 3;
pub const STREAM_NAMES: [&str; STREAMS] = ["compute", "sparse", "comm"];

/// Commands that may wait; a full ring makes the enqueuer wait.
const CAPACITY: u64 = 1024;
/// Polls before sleeping, about 50 us at 3 GHz: the next command usually follows at once.
const SPINS: u32 = 4000;

/// Where a command runs.
pub struct Site<'a> {
    pub cx: &'a Ctx,
    queues: &'a [Arc<Queue>; STREAMS],
    stream: usize,
}

impl Site<'_> {
    /// Ends this stream's failed state and returns what had failed. A stream that was closed stays so.
    pub fn take_fault(&self) -> Option<Refusal> {
        let queue = &self.queues[self.stream];
        if queue.stop.load(Ordering::SeqCst) {
            return self.failed();
        }
        queue.fault().take()
    }

    pub fn failed(&self) -> Option<Refusal> {
        self.queues[self.stream].fault().clone()
    }

    /// Waits until `stream` has done command `number`.
    pub fn wait(&self, stream: usize, number: u64) {
        self.queues[stream].wait(number);
    }

    /// Waits for an event, and fails if its stream has failed: what comes next builds on that stream's results.
    pub fn wait_for_results(&self, stream: usize, number: u64) -> Outcome {
        self.wait(stream, number);
        self.queues[stream].fault().clone().map_or(Ok(()), Err)
    }
}

pub struct Queue {
    ring: Box<[UnsafeCell<MaybeUninit<Command>>]>,
    pushed: AtomicU64,
    done: AtomicU64,
    stop: AtomicBool,
    asleep: AtomicBool,
    waiters: AtomicUsize,
    lock: Mutex<()>,
    work: Condvar,
    progress: Condvar,
    fault: Mutex<Option<Refusal>>,
}

// SAFETY: a slot is written by the one pusher while `pushed - done < CAPACITY` leaves it free, and read by the stream's
// thread only after `pushed` was published.
unsafe impl Sync for Queue {}
unsafe impl Send for Queue {}

impl Queue {
    pub fn new() -> Queue {
        Queue {
            ring: (0..CAPACITY).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect(),
            pushed: AtomicU64::new(0),
            done: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            asleep: AtomicBool::new(false),
            waiters: AtomicUsize::new(0),
            lock: Mutex::new(()),
            work: Condvar::new(),
            progress: Condvar::new(),
            fault: Mutex::new(None),
        }
    }

    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Acquire)
    }

    pub fn pushed(&self) -> u64 {
        self.pushed.load(Ordering::Relaxed)
    }

    /// Takes the work out of `command`, enqueues it and returns its number. One thread pushes.
    pub fn push(&self, command: &mut Command) -> u64 {
        let number = self.pushed() + 1;
        if number > CAPACITY {
            self.wait(number - CAPACITY);
        }
        let slot = &self.ring[(number % CAPACITY) as usize];
        // SAFETY: see `impl Sync`.
        unsafe { command.move_to(slot.get().cast()) };
        self.pushed.store(number, Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst) {
            let _held = self.held();
            self.work.notify_one();
        }
        number
    }

    /// Returns when command `number` is done.
    pub fn wait(&self, number: u64) {
        for _ in 0..SPINS {
            if self.done() >= number {
                return;
            }
            std::hint::spin_loop();
        }
        self.waiters.fetch_add(1, Ordering::SeqCst);
        let mut held = self.held();
        while self.done.load(Ordering::SeqCst) < number {
            held = self
                .progress
                .wait(held)
                .unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        drop(held);
        self.waiters.fetch_sub(1, Ordering::SeqCst);
    }

    fn held(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn fault(&self) -> MutexGuard<'_, Option<Refusal>> {
        self.fault.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Waits for command `number`; false when the stream is closed and drained.
    fn await_work(&self, number: u64) -> bool {
        for _ in 0..SPINS {
            if self.pushed.load(Ordering::Acquire) >= number {
                return true;
            }
            std::hint::spin_loop();
        }
        let mut held = self.held();
        self.asleep.store(true, Ordering::SeqCst);
        while self.pushed.load(Ordering::SeqCst) < number && !self.stop.load(Ordering::SeqCst) {
            held = self.work.wait(held).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        self.asleep.store(false, Ordering::SeqCst);
        self.pushed.load(Ordering::Acquire) >= number
    }

    fn serve(&self, site: &Site) {
        for number in 1.. {
            if !self.await_work(number) {
                return;
            }
            // SAFETY: published by `push` and not yet done, so the slot holds this command and is ours alone.
            let command: *const Command = self.ring[(number % CAPACITY) as usize].get().cast();
            let (name, always) = unsafe { ((*command).name, (*command).always) };
            if always || self.fault().is_none() {
                // SAFETY: each number is run once.
                let outcome = catch_unwind(AssertUnwindSafe(|| unsafe { Command::run(command, site) }))
                    .unwrap_or_else(|payload| Err(panicked(name, payload.as_ref())));
                if let Err(refusal) = outcome {
                    self.fault().get_or_insert(refusal);
                }
            }
            self.done.store(number, Ordering::SeqCst);
            if self.waiters.load(Ordering::SeqCst) > 0 {
                let _held = self.held();
                self.progress.notify_all();
            }
        }
    }

    /// Closes the stream: the command at hand is finished, later work is skipped, questions are answered by a refusal.
    fn stop(&self) {
        let closed = refusal("closed", "close", "device", "an open device", "one that was closed");
        self.fault().get_or_insert(closed);
        let _held = self.held();
        self.stop.store(true, Ordering::SeqCst);
        self.work.notify_one();
    }
}

/// The three streams and their threads. Dropping it closes them, see [`Queue::stop`].
pub struct Streams {
    pub queues: Arc<[Arc<Queue>; STREAMS]>,
    threads: Vec<JoinHandle<()>>,
}

impl Streams {
    pub fn start(cx: &Arc<Ctx>) -> Streams {
        let queues: Arc<[Arc<Queue>; STREAMS]> = Arc::new(std::array::from_fn(|_| Arc::new(Queue::new())));
        let threads = (0..STREAMS)
            .map(|stream| {
                let (cx, queues) = (cx.clone(), queues.clone());
                std::thread::Builder::new()
                    .name(format!("turbogr-{}", STREAM_NAMES[stream]))
                    .spawn(move || {
                        let site = Site {
                            cx: &cx,
                            queues: &queues,
                            stream,
                        };
                        queues[stream].serve(&site);
                    })
                    .expect("a stream thread")
            })
            .collect();
        Streams { queues, threads }
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        self.queues.iter().for_each(|queue| queue.stop());
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
