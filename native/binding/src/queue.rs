//! An ordered stream: a preallocated ring of commands, filled by the JavaScript thread and drained by the stream's thread.
//!
//! Command number `k` (from 1) is done when `done >= k`. This counter is the ring's read position, the clock that other streams
//! wait for, and tells the memory cache when a block is no longer in use. A command names the commands of other streams that it
//! waits for (`Command::after`): always earlier ones, so waits cannot form a cycle.

use crate::allocations::exempt;
use crate::command::Command;
use crate::failures::{Failure, Failures};
use crate::fault::{NativeFault, fault, panicked};
use crate::spans::{OpenSpan, Spans};
use crate::transfer::{Answer, Reply, resolve};
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use turbogr_kernels::Ctx;

/// `compute`, `sparse`, `comm`.
pub const STREAMS: usize = 3;
pub const COMPUTE: usize = 0;
pub const STREAM_NAMES: [&str; STREAMS] = ["compute", "sparse", "comm"];

/// Capacity in commands; enqueueing blocks when the ring is full.
const CAPACITY: u64 = 1024;
/// Polls before sleeping, about 100 us: the next command usually follows at once.
const SPINS: u32 = 4000;
const NOBODY: u64 = u64::MAX;

/// Where a command runs.
pub struct Site<'a> {
    pub cx: &'a Ctx,
    pub failures: &'a Failures,
    span: OpenSpan<'a>,
    /// Why this command's operands cannot be used. Only set for commands that always run.
    unusable: Option<Unusable>,
}

enum Unusable {
    Spoiled(Arc<Failure>),
    Closed,
}

impl Site<'_> {
    /// The fault to answer instead of a result: the failure that spoiled the operands, or that the device was closed.
    pub fn refusal(&self) -> Option<NativeFault> {
        self.unusable.as_ref().map(|unusable| match unusable {
            Unusable::Spoiled(failure) => failure.report(),
            Unusable::Closed => fault("closed", "close", "device", "an open device", "one that was closed"),
        })
    }

    pub fn usable(&self) -> bool {
        self.unusable.is_none()
    }

    /// The last thing that a command does.
    pub fn answer(&self, answer: Answer, reply: Reply) {
        self.span.end();
        resolve(answer, reply);
    }
}

pub struct Queue {
    ring: Box<[UnsafeCell<MaybeUninit<Command>>]>,
    pushed: AtomicU64,
    done: AtomicU64,
    stop: AtomicBool,
    asleep: AtomicBool,
    /// The first command that somebody sleeps for; [`NOBODY`] if nobody does. Commands before it end without waking anyone.
    awaited: AtomicU64,
    mutex: Mutex<()>,
    work: Condvar,
    progress: Condvar,
    pub spans: Spans,
}

// SAFETY: a slot is written by the one pusher while `pushed - done < CAPACITY` leaves it free, and read by the stream's
// thread only after `pushed` was published.
unsafe impl Sync for Queue {}
// SAFETY: as above.
unsafe impl Send for Queue {}

impl Queue {
    pub fn new() -> Queue {
        Queue {
            ring: (0..CAPACITY).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect(),
            pushed: AtomicU64::new(0),
            done: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            asleep: AtomicBool::new(false),
            awaited: AtomicU64::new(NOBODY),
            mutex: Mutex::new(()),
            work: Condvar::new(),
            progress: Condvar::new(),
            spans: Spans::default(),
        }
    }

    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Acquire)
    }

    pub fn pushed(&self) -> u64 {
        self.pushed.load(Ordering::Relaxed)
    }

    /// Moves the work out of `command`, enqueues it and returns its number. Single producer.
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
            let _lock = self.lock();
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
        let mut lock = self.lock();
        loop {
            self.awaited.fetch_min(number, Ordering::SeqCst);
            if self.done.load(Ordering::SeqCst) >= number {
                return;
            }
            lock = self
                .progress
                .wait(lock)
                .unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Waits for command `number`; false when the stream is closed and drained.
    fn await_work(&self, number: u64) -> bool {
        for _ in 0..SPINS {
            if self.pushed.load(Ordering::Acquire) >= number {
                return true;
            }
            std::hint::spin_loop();
        }
        let mut lock = self.lock();
        self.asleep.store(true, Ordering::SeqCst);
        while self.pushed.load(Ordering::SeqCst) < number && !self.stop.load(Ordering::SeqCst) {
            lock = self.work.wait(lock).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        self.asleep.store(false, Ordering::SeqCst);
        self.pushed.load(Ordering::Acquire) >= number
    }

    fn serve(&self, home: &Home) {
        for number in 1.. {
            if !self.await_work(number) {
                return;
            }
            // SAFETY: published by `push` and not yet done, so the slot holds this command and is ours alone.
            let command: &Command = unsafe { &*self.ring[(number % CAPACITY) as usize].get().cast() };
            for (queue, number) in home.queues.iter().zip(command.after) {
                if number > 0 {
                    queue.wait(number);
                }
            }
            let unusable = match self.stop.load(Ordering::SeqCst) {
                true => Some(Unusable::Closed),
                false => home.failures.spoiling(command.uses()).map(Unusable::Spoiled),
            };
            if command.always || unusable.is_none() {
                let site = Site {
                    cx: &home.cx,
                    failures: &home.failures,
                    span: self.spans.start(command.name, command.tag),
                    unusable,
                };
                // SAFETY: each number is run once.
                let outcome = catch_unwind(AssertUnwindSafe(|| unsafe { command.run(&site) }))
                    .unwrap_or_else(|payload| Err(panicked(command.name, payload.as_ref())));
                site.span.end();
                if let Err(fault) = outcome {
                    exempt(|| home.failures.add(fault, command.uses()));
                }
            }
            self.done.store(number, Ordering::SeqCst);
            if self.awaited.load(Ordering::SeqCst) <= number {
                let _lock = self.lock();
                self.awaited.store(NOBODY, Ordering::SeqCst); // who still waits says so again
                self.progress.notify_all();
            }
        }
    }

    /// Closes the stream: the current command finishes, later work is skipped, and promises resolve to a fault.
    fn stop(&self) {
        let _lock = self.lock();
        self.stop.store(true, Ordering::SeqCst);
        self.work.notify_one();
    }
}

/// What a stream's thread works with.
struct Home {
    cx: Ctx,
    queues: Arc<[Queue; STREAMS]>,
    failures: Arc<Failures>,
}

/// The three streams and their threads. Dropping it closes them, see [`Queue::stop`].
pub struct Streams {
    pub queues: Arc<[Queue; STREAMS]>,
    pub failures: Arc<Failures>,
    threads: Vec<JoinHandle<()>>,
}

impl Streams {
    /// One stream per context: its threads, including the stream's own, and the shared memory.
    pub fn start(contexts: [Ctx; STREAMS]) -> Streams {
        let queues: Arc<[Queue; STREAMS]> = Arc::new(std::array::from_fn(|_| Queue::new()));
        let failures = Arc::new(Failures::default());
        let threads = contexts
            .into_iter()
            .enumerate()
            .map(|(stream, cx)| {
                let home = Home {
                    cx,
                    queues: queues.clone(),
                    failures: failures.clone(),
                };
                std::thread::Builder::new()
                    .name(format!("turbogr-{}", STREAM_NAMES[stream]))
                    .spawn(move || home.queues[stream].serve(&home))
                    .expect("a stream thread")
            })
            .collect();
        Streams {
            queues,
            failures,
            threads,
        }
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        self.queues.iter().for_each(Queue::stop);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
